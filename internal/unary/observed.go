package unary

import (
	"context"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// observed tells watcher of each call to h, as grpc-go does.
func observed(watcher stats.Handler, method string, h Handler) Handler {
	return func(ctx context.Context, request []byte) ([]byte, Later, error) {
		began := time.Now()
		ctx = watcher.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method})
		md, _ := metadata.FromIncomingContext(ctx)
		watcher.HandleRPC(ctx, &stats.InHeader{FullMethod: method, Header: md})
		watcher.HandleRPC(ctx, &stats.Begin{BeginTime: began})
		end := func(err error) { watcher.HandleRPC(ctx, &stats.End{BeginTime: began, EndTime: time.Now(), Error: err}) }
		answer, later, err := h(ctx, request)
		if later == nil {
			end(err)
			return answer, nil, err
		}
		return nil, func(waiting context.Context) ([]byte, error) {
			answer, err := later(withValues{waiting, ctx}) //nolint:contextcheck // it is a context
			end(err)
			return answer, err
		}, nil
	}
}

// withValues ends as one context does, and has the values of another.
type withValues struct {
	context.Context                 //nolint:containedctx // it is a context
	values          context.Context //nolint:containedctx // the same
}

// Value implements context.Context.
func (w withValues) Value(key any) any { return w.values.Value(key) }
