package unary_test

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"sallyport/internal/unary"
)

// The methods of these tests.
const (
	methodNow   = "/test.Service/Now"   // answers with the request, at once
	methodLater = "/test.Service/Later" // the same, from a goroutine of its own
)

// maxRequest is what a request may have here, in bytes.
const maxRequest = 64 << 10

func options() unary.Options {
	return unary.Options{MaxRequestBytes: maxRequest, ConnectionAge: time.Hour, ConnectionAgeGrace: time.Minute, Drain: 10 * time.Second}
}

// handlers are those of these tests, and more.
func handlers(more map[string]unary.Handler) map[string]unary.Handler {
	all := map[string]unary.Handler{
		methodNow: func(_ context.Context, request []byte) ([]byte, unary.Later, error) { return clone(request), nil, nil },
		methodLater: func(_ context.Context, request []byte) ([]byte, unary.Later, error) {
			kept := clone(request) // it is valid only until we return
			return nil, func(context.Context) ([]byte, error) { return kept, nil }, nil
		},
	}
	for method, h := range more {
		all[method] = h
	}
	return all
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// running is a Server that serves.
type running struct {
	listener *counting
	stop     context.CancelFunc
	ended    chan error // what Serve returned
}

// serve serves on a unix socket until the test ends, and holds that Serve then returns nil.
func serve(t testing.TB, s *unary.Server) *running {
	t.Helper()
	return serveOn(t, s, listen(t))
}

func serveOn(t testing.TB, s *unary.Server, l net.Listener) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{listener: &counting{Listener: l}, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- s.Serve(ctx, r.listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.ended; err != nil {
			t.Errorf("Serve = %v", err)
		}
		r.ended <- nil
	})
	return r
}

// listen listens on a socket in a folder with a short name: a socket's path has at most 107 bytes.
func listen(t testing.TB) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "sp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client returns a gRPC client of the server.
func (r *running) client(t testing.TB, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	o = append(o, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(
		grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20),
	))
	conn, err := grpc.NewClient("unix:"+r.listener.Addr().String(), o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call calls with bytes, and waits for the server if it has to.
func call(ctx context.Context, conn *grpc.ClientConn, method string, request []byte, o ...grpc.CallOption) ([]byte, error) {
	var answer []byte
	err := conn.Invoke(ctx, method, &request, &answer, append(o, grpc.WaitForReady(true))...)
	return answer, err
}

// bytesCodec sends what is already encoded.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// counting counts the connections that were accepted.
type counting struct {
	net.Listener
	accepted atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// message is a gRPC message as it travels: not compressed, and its length before it.
func message(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
}

// eventually waits until a condition holds, and fails the test if it does not within ten seconds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	const patience, pause = 10 * time.Second, time.Millisecond
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// noneLeft holds that no goroutine of the package is left.
func noneLeft(t testing.TB) {
	t.Helper()
	eventually(t, "no goroutine of the server is left", func() bool { return !strings.Contains(stacks(), "sallyport/internal/unary.") })
}

// stacks are those of all goroutines.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		if stack := make([]byte, size); runtime.Stack(stack, true) < size {
			return string(stack[:runtime.Stack(stack, true)])
		}
	}
}
