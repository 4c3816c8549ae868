package unary_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"sallyport/internal/unary"
)

type tagged struct{}

// heard is a stats.Handler that keeps what it hears, each with the method that TagRPC was told.
type heard struct {
	stats.Handler // of connections nothing is told
	mu            sync.Mutex
	events        []string
}

func (h *heard) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, tagged{}, info.FullMethodName)
}

func (h *heard) HandleRPC(ctx context.Context, s stats.RPCStats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	method, _ := ctx.Value(tagged{}).(string)
	switch s := s.(type) {
	case *stats.Begin:
		h.events = append(h.events, method+" begins")
	case *stats.End:
		h.events = append(h.events, method+" ends: "+status.Code(s.Error).String())
		if s.EndTime.Before(s.BeginTime) {
			h.events = append(h.events, "it ended before it began")
		}
	}
}

func TestAWatcherHearsOfEachCall(t *testing.T) {
	failed := status.Error(codes.Aborted, "no")
	const nowFails, laterFails = "/test.Service/NowFails", "/test.Service/LaterFails"
	h := &heard{}
	o := options()
	o.Stats = h
	conn := serve(t, unary.New(handlers(map[string]unary.Handler{
		nowFails: func(ctx context.Context, _ []byte) ([]byte, unary.Later, error) {
			if ctx.Value(tagged{}) != nowFails {
				t.Error("the handler's context is not the watcher's")
			}
			return nil, nil, failed
		},
		laterFails: func(context.Context, []byte) ([]byte, unary.Later, error) {
			return nil, func(ctx context.Context) ([]byte, error) {
				if ctx.Value(tagged{}) != laterFails {
					t.Error("Later's context is not the watcher's")
				}
				if _, ok := ctx.Deadline(); !ok {
					t.Error("Later's context has no deadline")
				}
				return nil, failed
			}, nil
		},
	}), o)).client(t)
	var want []string
	for _, c := range []struct {
		method string
		code   codes.Code
	}{{methodNow, codes.OK}, {methodLater, codes.OK}, {nowFails, codes.Aborted}, {laterFails, codes.Aborted}} {
		if _, err := call(t.Context(), conn, c.method, nil); status.Code(err) != c.code {
			t.Errorf("%s: %v", c.method, err)
		}
		want = append(want, c.method+" begins", c.method+" ends: "+c.code.String())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.events, want) {
		t.Errorf("heard %q, want %q", h.events, want)
	}
}
