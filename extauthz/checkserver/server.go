package checkserver

import (
	"context"
	"fmt"
	"net"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"

	"sallyport/extauthz"
	"sallyport/gateway"
	"sallyport/internal/unary"
)

// Decider decides: *extauthz.Authorizer. Begin does not wait, and leaves to Continue what it does not know.
type Decider interface {
	Begin(r extauthz.Request) (d extauthz.Decision, known bool)
	Continue(ctx context.Context, r extauthz.Request) extauthz.Decision
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

// check is envoy.service.auth.v3.Authorization/Check.
func (s *Service) check(ctx context.Context, wire []byte) ([]byte, unary.Later, error) {
	q := decode(wire, s.names)
	if d, known := s.decider.Begin(q.Request); known {
		answer, err := s.answer(ctx, &q, d)
		return answer, nil, err
	}
	return nil, s.later(q.clone()), nil // wire is the connection's again
}

func (s *Service) later(q question) unary.Later {
	return func(ctx context.Context) ([]byte, error) {
		return s.answer(ctx, &q, s.decider.Continue(ctx, q.Request))
	}
}

// answer logs and encodes a decision. Its error says that it cannot be sent, and no header that Envoy lets through brings
// that about.
func (s *Service) answer(ctx context.Context, q *question, d extauthz.Decision) ([]byte, error) {
	if s.log.Wants(d) {
		s.log.Write(ctx, d, q.asked())
	}
	if d.Allowed() {
		return encodeAllowed(d, s.names, q.Forged), nil
	}
	return encodeDenied(d)
}

const (
	// connectionAge makes Envoys reconnect now and then, so that replicas share the load (istio#11181).
	connectionAge      = 5 * time.Minute
	connectionAgeGrace = 30 * time.Second
	// maxRequestBytes is far above a CheckRequest without a body (headers are at most 32 KiB in our Envoy).
	maxRequestBytes = 256 << 10
	// drain bounds a graceful stop; checks take milliseconds.
	drain = 5 * time.Second
)

// Serve answers checks and health questions (grpc.health.v1) on l until ctx ends; then it finishes what it has begun.
// watcher hears of every call, for traces; nil for none.
func (s *Service) Serve(ctx context.Context, l net.Listener, watcher stats.Handler) error {
	h := health{}
	defer context.AfterFunc(ctx, func() { h.ending.Store(true) })()
	err := unary.New(map[string]unary.Handler{
		authv3.Authorization_Check_FullMethodName: s.check,
		healthv1.Health_Check_FullMethodName:      h.check,
	}, unary.Options{
		MaxRequestBytes: maxRequestBytes, Metadata: []string{"traceparent"}, Stats: watcher,
		ConnectionAge: connectionAge, ConnectionAgeGrace: connectionAgeGrace, Drain: drain,
	}).Serve(ctx, l)
	if err != nil {
		return fmt.Errorf("serve checks: %w", err)
	}
	return nil
}
