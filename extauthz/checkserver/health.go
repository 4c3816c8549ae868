package checkserver

import (
	"context"
	"sync/atomic"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sallyport/internal/unary"
)

// health answers grpc.health.v1.Health/Check. Watch is a streaming call, and not served: clients then ask by Check.
type health struct{ ending atomic.Bool }

func (h *health) check(_ context.Context, wire []byte) ([]byte, unary.Later, error) {
	var asked healthv1.HealthCheckRequest
	if err := proto.Unmarshal(wire, &asked); err != nil {
		return nil, nil, status.Error(codes.Internal, "the HealthCheckRequest cannot be read")
	}
	if s := asked.GetService(); s != "" && s != authv3.Authorization_ServiceDesc.ServiceName {
		return nil, nil, status.Error(codes.NotFound, "unknown service")
	}
	state := healthv1.HealthCheckResponse_SERVING
	if h.ending.Load() { // so that Envoy turns to another replica first
		state = healthv1.HealthCheckResponse_NOT_SERVING
	}
	answer, err := proto.Marshal(&healthv1.HealthCheckResponse{Status: state})
	return answer, nil, err
}
