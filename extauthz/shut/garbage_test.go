package shut_test

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sallyport/envoy/envoytest"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// stage is a site whose door the test plays.
type stage struct {
	*site
	endpoint xds.Endpoint
}

func newStage(t *testing.T) stage {
	t.Helper()
	endpoint := xds.Endpoint("unix:" + filepath.Join(envoytest.SocketDir(t), "door.sock"))
	return stage{newSite(t, nil, plan{door: endpoint, timeout: time.Second}), endpoint}
}

// play serves until the test ends; every connection ends with it.
func (s stage) play(t *testing.T, serve func(net.Listener)) {
	t.Helper()
	l := &closingListener{Listener: listen(t, s.endpoint)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(l)
	}()
	t.Cleanup(func() {
		_ = l.Close() // which ends serve
		<-done
		l.closeAll()
	})
}

// closingListener can close what it has accepted.
type closingListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *closingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// closeAll returns when Envoy has seen the end of each connection: it would put the next question on one that ends under it.
func (l *closingListener) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		if half, ok := conn.(*net.UnixConn); ok && half.CloseWrite() == nil {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			_, _ = io.Copy(io.Discard, conn) // up to Envoy's end
		}
		_ = conn.Close() // it may be closed already
	}
}

// asBytes sends what a handler returns as it is, protobuf or not.
type asBytes struct{ encoding.Codec }

func (asBytes) Name() string                    { return "proto" }
func (asBytes) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (asBytes) Unmarshal(d []byte, v any) error { *v.(*[]byte) = d; return nil }

// answering is a gRPC server that gives the same answer to every check.
func answering(t *testing.T, answer []byte, err error) func(net.Listener) {
	server := grpc.NewServer(grpc.ForceServerCodec(asBytes{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var question []byte
		if err := stream.RecvMsg(&question); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		return stream.SendMsg(&answer)
	}))
	t.Cleanup(server.Stop)
	return func(l net.Listener) { _ = server.Serve(l) } // it ends as it is stopped
}

func yes(t *testing.T, change func(*authv3.CheckResponse, *authv3.OkHttpResponse)) []byte {
	t.Helper()
	ok := &authv3.OkHttpResponse{HeadersToRemove: []string{"authorization"}}
	for _, h := range gateway.DefaultHeaders().Values(gateway.Identity{Namespace: "agents:run-1", KeyID: "00ff"}) {
		ok.Headers = append(ok.Headers, set(h.Name, h.Value))
	}
	response := &authv3.CheckResponse{Status: &rpcstatus.Status{}, HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: ok}}
	change(response, ok)
	text, err := proto.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func set(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}
}

func TestADoorThatAnswersGarbageIsShut(t *testing.T) {
	broken := outcome{status: http.StatusInternalServerError, code: gateway.CodeInternal}
	denied := outcome{status: http.StatusForbidden, wordless: true}
	sets := func(name, value string) []byte {
		return yes(t, func(_ *authv3.CheckResponse, ok *authv3.OkHttpResponse) {
			ok.Headers = append(ok.Headers, set(name, value))
		})
	}
	s := newStage(t)
	for _, c := range []struct {
		name  string
		serve func(net.Listener)
		want  outcome
	}{
		{"not protobuf", answering(t, []byte("\xff\xff\xff\xff yes"), nil), unavailable},
		{"protobuf cut short", answering(t, sets("x-sallyport-agent", "run-1")[:40], nil), unavailable},
		{"another message", answering(t, []byte("\x0a\x05hello\x12\x01\x07"), nil), unavailable},
		{"too much", answering(t, sets("x-sallyport-agent", strings.Repeat("x", 128<<10)), nil), unavailable},
		{"nothing, an empty message", answering(t, nil, nil), broken},
		{"a yes that names nobody", answering(t, yes(t, func(r *authv3.CheckResponse, _ *authv3.OkHttpResponse) { r.HttpResponse = nil }), nil), broken},
		{"a yes with an empty namespace", answering(t, sets("x-sallyport-namespace", ""), nil), broken},
		{"a yes that is a denial", answering(t, yes(t, func(r *authv3.CheckResponse, _ *authv3.OkHttpResponse) {
			r.HttpResponse = &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{}}
		}), nil), broken},
		{"a no that is a yes", answering(t, yes(t, func(r *authv3.CheckResponse, _ *authv3.OkHttpResponse) { r.Status.Code = int32(codes.PermissionDenied) }), nil), denied},
		{"a yes with a status that does not exist", answering(t, yes(t, func(r *authv3.CheckResponse, _ *authv3.OkHttpResponse) { r.Status.Code = 99 }), nil), denied},
		{"a yes that sets another header", answering(t, sets("x-admin", "true"), nil), broken},
		{"a yes that sets the path", answering(t, sets(":path", "/v1/evil"), nil), broken},
		{"a yes with a line break", answering(t, sets("x-sallyport-agent", "a\r\nx-evil: 1"), nil), broken},
		{"a yes with a bad name", answering(t, sets("x-sallyport-a b", "x"), nil), broken},
		{"a gRPC error", answering(t, nil, status.Error(codes.Internal, "evil")), unavailable},
		{"a gRPC denial without an answer", answering(t, nil, status.Error(codes.PermissionDenied, "evil")), unavailable},
		{"unimplemented", func(l net.Listener) { _ = grpc.NewServer().Serve(l) }, unavailable},
		{"HTTP/1.1", func(l net.Listener) { _ = http.Serve(l, http.NotFoundHandler()) }, unavailable},
		{"HTTP/2 that is no gRPC", serveHTTP2(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>welcome") })), unavailable},
		{"HTTP/2 with a gRPC status and no message", serveHTTP2(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "0")
		})), unavailable},
		{"bytes", speaking("\x00\xff\x00\xffgarbage"), unavailable},
		{"hanging up", speaking(""), unavailable},
		{"a half-open door, which says nothing", silent, unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.play(t, c.serve)
			s.run(t, []row{{name: "it", send: bearer("whatever-it-may-be"), want: c.want}})
		})
	}
}

func serveHTTP2(h http.Handler) func(net.Listener) {
	return func(l net.Listener) {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: h, Protocols: &protocols}
		defer server.Close() //nolint:errcheck // a test
		_ = server.Serve(l)  // it ends as the listener is closed
	}
}

// speaking says the same to whoever connects, and hangs up.
func speaking(text string) func(net.Listener) {
	return func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
}

// silent takes connections, and never says a word.
func silent(l net.Listener) {
	for {
		if _, err := l.Accept(); err != nil {
			return
		}
	}
}
