package checkserver

import (
	"context"
	"net"
	"runtime"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// Decider decides: *extauthz.Authorizer.
type Decider interface {
	Decide(ctx context.Context, r extauthz.Request) extauthz.Decision
}

// Service answers Envoy's checks.
type Service struct {
	decider Decider
	names   gateway.Headers
	log     *extauthz.DecisionLog
}

// NewService returns a Service that sets the headers of names.
func NewService(d Decider, names gateway.Headers, log *extauthz.DecisionLog) *Service {
	return &Service{decider: d, names: names, log: log}
}

// check decides and encodes the answer. Its error says that the answer cannot be sent, and no header that Envoy lets
// through brings that about.
func (s *Service) check(ctx context.Context, q *question) (answer, error) {
	d := s.decider.Decide(ctx, q.Request)
	if s.log.Wants(d) {
		s.log.Write(ctx, d, q.asked)
	}
	return answerTo(d, s.names, q.Forged)
}

// description is envoy.service.auth.v3.Authorization by hand: the generated one takes a CheckRequest for a request, and
// here it is a question (see wire.go).
var description = grpc.ServiceDesc{
	ServiceName: authv3.Authorization_ServiceDesc.ServiceName,
	Metadata:    authv3.Authorization_ServiceDesc.Metadata,
	HandlerType: (*checker)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Check", Handler: handle}},
}

type checker interface {
	check(ctx context.Context, q *question) (answer, error)
}

func handle(service any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC's order
	var q *question
	if err := read(&q); err != nil {
		return nil, err
	}
	s := service.(checker) //nolint:forcetypeassert // gRPC checked it when the service was registered
	if intercept == nil {
		return s.check(ctx, q)
	}
	info := &grpc.UnaryServerInfo{Server: service, FullMethod: authv3.Authorization_Check_FullMethodName}
	return intercept(ctx, q, info, func(ctx context.Context, _ any) (any, error) { return s.check(ctx, q) })
}

const (
	// minPing is below Envoy's connection_keepalive interval, or the server answers its pings with too_many_pings (istio#15088).
	minPing = 10 * time.Second
	// connectionAge makes Envoys reconnect now and then, so that replicas share the load (istio#11181).
	connectionAge      = 5 * time.Minute
	connectionAgeGrace = 30 * time.Second
	// maxRequestBytes is far above a CheckRequest without a body (headers are at most 32 KiB in our Envoy).
	maxRequestBytes = 256 << 10
	// window is the flow control's, for streams and connections. A fixed one, far above what checks need, spares the pings
	// with which gRPC would measure the connection to size it.
	window = 1 << 20
	// drain bounds a graceful stop; checks take milliseconds.
	drain = 5 * time.Second
)

// Serve answers checks and health questions (grpc.health.v1) on l until ctx ends; then it finishes what it has begun.
// more are further options of the server, such as a stats handler for traces.
func (s *Service) Serve(ctx context.Context, l net.Listener, more ...grpc.ServerOption) error {
	server := grpc.NewServer(append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec(s.names)),
		// A goroutine that stays has its stack grown already. More are started when all of these are busy.
		grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: connectionAge, MaxConnectionAgeGrace: connectionAgeGrace}),
		grpc.MaxRecvMsgSize(maxRequestBytes),
	}, more...)...)
	server.RegisterService(&description, s)
	state := health.NewServer()
	healthv1.RegisterHealthServer(server, state)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		state.Shutdown() // says NOT_SERVING, so that Envoy turns to another replica first
		timer := time.AfterFunc(drain, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	})
	err := server.Serve(l)
	if !stop() { // ctx ended: wait for those in flight
		<-stopped
		return nil
	}
	return err
}
