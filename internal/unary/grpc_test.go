package unary_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // the client compresses in one test
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"sallyport/internal/unary"
)

// Here grpc-go's client is the peer.

// both runs a test with a method that answers at once, and with one that answers later.
func both(t *testing.T, test func(t *testing.T, method string)) {
	t.Run("at once", func(t *testing.T) { t.Parallel(); test(t, methodNow) })
	t.Run("later", func(t *testing.T) { t.Parallel(); test(t, methodLater) })
}

func TestACallIsAnswered(t *testing.T) {
	conn := serve(t, unary.New(handlers(nil), options())).client(t)
	t.Run("calls", func(t *testing.T) {
		both(t, func(t *testing.T, method string) {
			for _, size := range []int{0, 1, 100, 16 << 10, maxRequest} {
				request := bytes.Repeat([]byte("x"), size)
				answer, err := call(t.Context(), conn, method, request)
				if err != nil || !bytes.Equal(answer, request) {
					t.Errorf("%d bytes: %d bytes and %v came back", size, len(answer), err)
				}
			}
		})
	})
}

func TestAnErrorReachesTheCallerAsItsStatus(t *testing.T) {
	long := strings.Repeat("é", 4000)
	for name, c := range map[string]struct {
		err  error
		code codes.Code
		text string
	}{
		"a status":                    {status.Error(codes.NotFound, "no such thing"), codes.NotFound, "no such thing"},
		"one that is not ASCII":       {status.Error(codes.Internal, "Schlüssel 鍵 100%\n%zz +"), codes.Internal, "Schlüssel 鍵 100%\n%zz +"},
		"one without a text":          {status.Error(codes.Aborted, ""), codes.Aborted, ""},
		"one with a text without end": {status.Error(codes.Aborted, long), codes.Aborted, long[:1024]},
		"one that is wrapped":         {fmt.Errorf("look: %w", status.Error(codes.NotFound, "gone")), codes.NotFound, "look: rpc error: code = NotFound desc = gone"},
		"a deadline":                  {fmt.Errorf("ask: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "ask: context deadline exceeded"},
		"an end":                      {context.Canceled, codes.Canceled, "context canceled"},
		"any other":                   {errors.New("odd"), codes.Unknown, "odd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := serve(t, unary.New(map[string]unary.Handler{
				methodNow: func(context.Context, []byte) ([]byte, unary.Later, error) { return nil, nil, c.err },
				methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
					return nil, func(context.Context) ([]byte, error) { return nil, c.err }, nil
				},
			}, options())).client(t)
			for _, method := range []string{methodNow, methodLater} {
				_, err := call(t.Context(), conn, method, nil)
				if got := status.Convert(err); got.Code() != c.code || got.Message() != c.text {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
}

func TestWhatIsNotServedIsRefusedByItsReason(t *testing.T) {
	conn := serve(t, unary.New(handlers(nil), options())).client(t)
	for name, c := range map[string]struct {
		method  string
		request []byte
		options []grpc.CallOption
		code    codes.Code
		says    string
	}{
		"a method that there is not":   {"/test.Service/Other", nil, nil, codes.Unimplemented, "this method is not served here"},
		"a message that is too large":  {methodNow, make([]byte, maxRequest+1), nil, codes.ResourceExhausted, "65536 bytes"},
		"one larger than every window": {methodNow, make([]byte, 8<<20), nil, codes.ResourceExhausted, "65536 bytes"},
		"a message that is compressed": {methodNow, make([]byte, 1000), []grpc.CallOption{grpc.UseCompressor("gzip")}, codes.Unimplemented, "identity"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // what was refused leaves the connection as it was
				_, err := call(t.Context(), conn, c.method, c.request, c.options...)
				if got := status.Convert(err); got.Code() != c.code || !strings.Contains(got.Message(), c.says) {
					t.Errorf("%v", err)
				}
			}
			if _, err := call(t.Context(), conn, methodNow, nil); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestARefusalOfCompressionNamesWhatIsUnderstood(t *testing.T) {
	conn := serve(t, unary.New(handlers(nil), options())).client(t)
	var header, trailer metadata.MD
	_, err := call(t.Context(), conn, methodNow, make([]byte, 1000), grpc.UseCompressor("gzip"), grpc.Header(&header), grpc.Trailer(&trailer))
	if got := metadata.Join(header, trailer).Get("grpc-accept-encoding"); len(got) != 1 || got[0] != "identity" {
		t.Errorf("grpc-accept-encoding = %q (%v)", got, err)
	}
}

// waiting serves a method whose Later says on began that it waits, and then what ended its context on ended.
func waiting(t *testing.T) (conn *grpc.ClientConn, began chan time.Time, ended chan error) {
	t.Helper()
	began, ended = make(chan time.Time, 9), make(chan error, 9)
	r := serve(t, unary.New(map[string]unary.Handler{
		methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
			return nil, func(ctx context.Context) ([]byte, error) {
				deadline, _ := ctx.Deadline()
				began <- deadline
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}, nil
		},
	}, options()))
	return r.client(t), began, ended
}

func TestACallerWhoGivesUpEndsWhatRunsForIt(t *testing.T) {
	conn, began, ended := waiting(t)
	ctx, giveUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { _, err := call(ctx, conn, methodLater, nil); answered <- err }()
	<-began
	giveUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("its context ended with %v", err)
	}
	if err := <-answered; status.Code(err) != codes.Canceled {
		t.Errorf("the caller got %v", err)
	}
}

func TestACallersDeadlineReachesWhatRunsForIt(t *testing.T) {
	conn, began, _ := waiting(t)
	for _, c := range []struct{ asked, least, most time.Duration }{
		{5 * time.Second, 0, 5 * time.Second},
		{time.Hour, 5 * time.Second, 10 * time.Second}, // never longer than the server likes
		{0, 5 * time.Second, 10 * time.Second},         // none
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		if c.asked > 0 {
			ctx, giveUp = context.WithTimeout(t.Context(), c.asked)
		}
		before := time.Now()
		go func() { _, _ = call(ctx, conn, methodLater, nil) }()
		deadline := <-began
		if deadline.Before(before.Add(c.least)) || deadline.After(time.Now().Add(c.most)) {
			t.Errorf("asked for %s, and got %s", c.asked, time.Until(deadline))
		}
		giveUp()
	}
}

func TestADeadlineEndsWhatRuns(t *testing.T) {
	conn, began, ended := waiting(t)
	ctx, giveUp := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer giveUp()
	go func() { <-began }()
	if _, err := call(ctx, conn, methodLater, nil); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the caller got %v", err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) { // the caller may be sooner to give up
			t.Errorf("its context ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("its context did not end")
	}
}

func TestAnAnswerLargerThanEveryWindowArrivesWhole(t *testing.T) {
	large := make([]byte, 5<<20)
	for i := range large {
		large[i] = byte(i * 31)
	}
	conn := serve(t, unary.New(map[string]unary.Handler{
		methodNow: func(context.Context, []byte) ([]byte, unary.Later, error) { return large, nil, nil },
		methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
			return nil, func(context.Context) ([]byte, error) { return large, nil }, nil
		},
	}, options())).client(t, grpc.WithStaticStreamWindowSize(65535), grpc.WithStaticConnWindowSize(65535)) // so they stay small
	t.Run("calls", func(t *testing.T) {
		both(t, func(t *testing.T, method string) {
			answer, err := call(t.Context(), conn, method, nil)
			if err != nil || !bytes.Equal(answer, large) {
				t.Errorf("%d bytes, %v", len(answer), err)
			}
		})
	})
}

func TestCallsAtTheSameTimeGetEachItsOwnAnswer(t *testing.T) {
	const callers, calls = 300, 10
	conn := serve(t, unary.New(handlers(nil), options())).client(t)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range calls {
				request := fmt.Appendf(nil, "%d.%d.%s", i, j, strings.Repeat("x", 37*i))
				method := methodNow
				if (i+j)%2 == 0 {
					method = methodLater
				}
				if answer, err := call(t.Context(), conn, method, request); err != nil || !bytes.Equal(answer, request) {
					t.Errorf("call %d of caller %d: %d bytes, %v", j, i, len(answer), err)
				}
			}
		})
	}
	all.Wait()
}

func TestAHandlerFindsTheMetadataThatOptionsName(t *testing.T) {
	found := make(chan metadata.MD, 1)
	o := options()
	o.Metadata = []string{"traceparent", "absent"}
	see := func(ctx context.Context) {
		md, _ := metadata.FromIncomingContext(ctx)
		if p, ok := peer.FromContext(ctx); !ok || p.Addr == nil {
			t.Error("the context does not say who calls")
		}
		found <- md
	}
	conn := serve(t, unary.New(map[string]unary.Handler{
		methodNow: func(ctx context.Context, _ []byte) ([]byte, unary.Later, error) { see(ctx); return nil, nil, nil },
		methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
			return nil, func(ctx context.Context) ([]byte, error) { see(ctx); return nil, nil }, nil
		},
	}, o)).client(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "a", "traceparent", "b", "authorization", "secret")
	for _, method := range []string{methodNow, methodLater} {
		if _, err := call(ctx, conn, method, nil); err != nil {
			t.Fatal(err)
		}
		if md := <-found; len(md) != 1 || strings.Join(md.Get("traceparent"), " ") != "a b" {
			t.Errorf("%s found %v", method, md)
		}
	}
}
