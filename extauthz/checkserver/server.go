package checkserver

import (
	"context"
	"log/slog"
	"net"
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
	authv3.UnimplementedAuthorizationServer
	decider Decider
	names   gateway.Headers
	log     *slog.Logger
}

// NewService returns a Service that sets the headers of names.
func NewService(d Decider, names gateway.Headers, log *slog.Logger) *Service {
	return &Service{decider: d, names: names, log: log}
}

// Check implements envoy.service.auth.v3. It never returns an error: a gRPC error would let Envoy's failure_mode_allow
// decide, a denial that says 503 is shut whatever that says.
func (s *Service) Check(ctx context.Context, check *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	p := read(check, s.names)
	d := s.decider.Decide(ctx, p.Request)
	if !d.Allowed() {
		http := check.GetAttributes().GetRequest().GetHttp()
		extauthz.LogDenial(ctx, s.log, d, extauthz.Asked{Method: http.GetMethod(), Path: http.GetPath(), RequestID: p.RequestID})
	}
	return write(d, s.names, p.Forged), nil
}

const (
	// minPing is below Envoy's connection_keepalive interval, or the server answers its pings with too_many_pings (istio#15088).
	minPing = 10 * time.Second
	// connectionAge makes Envoys reconnect now and then, so that replicas share the load (istio#11181).
	connectionAge      = 5 * time.Minute
	connectionAgeGrace = 30 * time.Second
	// maxRequestBytes is far above a CheckRequest without a body (headers are at most 32 KiB in our Envoy).
	maxRequestBytes = 256 << 10
	// drain bounds a graceful stop; checks take milliseconds.
	drain = 5 * time.Second
)

// Serve answers checks and health questions (grpc.health.v1) on l until ctx ends; then it finishes what it has begun.
func (s *Service) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: connectionAge, MaxConnectionAgeGrace: connectionAgeGrace}),
		grpc.MaxRecvMsgSize(maxRequestBytes),
	)
	authv3.RegisterAuthorizationServer(server, s)
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
