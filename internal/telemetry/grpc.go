package telemetry

import (
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"google.golang.org/grpc/stats"
)

// GRPCServer returns what a gRPC server tells its calls to, so that all but the health checks are traced; nil if tracing is off.
func (t *Tracing) GRPCServer() stats.Handler {
	if t == nil {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagator), otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	)
}
