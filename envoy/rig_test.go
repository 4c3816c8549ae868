package envoy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/structpb"

	"sallyport/envoy/envoytest"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// rig is a real Envoy between a client and three small servers on unix sockets, which record what reaches them.
type rig struct {
	*envoytest.Envoy
	authz    *authzServer
	backend  *recorder
	exchange *recorder
}

// newRig starts one. change may edit the gateway before Envoy starts.
func newRig(t *testing.T, change ...func(*xds.Gateway)) *rig {
	t.Helper()
	dir := envoytest.SocketDir(t)
	r := &rig{
		authz:    newAuthz(t, filepath.Join(dir, "authz.sock")),
		backend:  newRecorder(t, filepath.Join(dir, "backend.sock")),
		exchange: newRecorder(t, filepath.Join(dir, "exchange.sock")),
	}
	g := xds.Gateway{
		Backend: xds.Backend{
			Upstream: xds.Upstream{Endpoint: r.backend.endpoint},
			Name:     "memory",
			Paths:    []xds.Path{{Prefix: "/v1/"}, {Exact: "/mcp", Stream: true}, {Exact: "/healthz", Open: true}},
		},
		// Longer than the default: these tests are about answers, on machines that are busy with others.
		Authz:    xds.Authz{Upstream: xds.Upstream{Endpoint: r.authz.endpoint}, Timeout: 3 * time.Second},
		Exchange: &xds.Exchange{Upstream: xds.Upstream{Endpoint: r.exchange.endpoint}},
	}
	for _, f := range change {
		f(&g)
	}
	r.Envoy = envoytest.Start(t, g)
	return r
}

// authzServer is Envoy's external authorization service. It allows every request as agents:run-1 until told otherwise.
type authzServer struct {
	authv3.UnimplementedAuthorizationServer
	endpoint xds.Endpoint
	server   *grpc.Server

	mu     sync.Mutex
	answer func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error)
	seen   []*authv3.CheckRequest
}

func newAuthz(t *testing.T, socket string) *authzServer {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	a := &authzServer{
		endpoint: xds.Endpoint("unix:" + socket),
		server:   grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true})),
	}
	a.respond(allow())
	authv3.RegisterAuthorizationServer(a.server, a)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		a.server.Stop()
		<-done
	})
	return a
}

// Check records the question and gives the answer of the moment.
func (a *authzServer) Check(ctx context.Context, request *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	a.mu.Lock()
	a.seen = append(a.seen, request)
	answer := a.answer
	a.mu.Unlock()
	return answer(ctx, request)
}

func (a *authzServer) respond(with *authv3.CheckResponse) {
	a.respondFunc(func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) { return with, nil })
}

func (a *authzServer) respondFunc(f func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

func (a *authzServer) checks() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

// headers returns the values that the last check showed of a header.
func (a *authzServer) headers(name string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) == 0 {
		return nil
	}
	var out []string
	for _, h := range a.seen[len(a.seen)-1].GetAttributes().GetRequest().GetHttp().GetHeaderMap().GetHeaders() {
		if h.GetKey() == name {
			out = append(out, string(h.GetRawValue()))
		}
	}
	return out
}

// identity is what the authorization server says unless a test says otherwise.
var identity = gateway.Identity{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "pod-1", KeyID: "key-1"}

// allow sets the trusted headers, removes the key, and says for the log who it was.
func allow() *authv3.CheckResponse {
	ok := &authv3.OkHttpResponse{HeadersToRemove: append(gateway.ClaimedHeaders().All(), "authorization")}
	for _, h := range gateway.DefaultHeaders().Values(identity) {
		ok.Headers = append(ok.Headers, overwrite(h.Name, h.Value))
	}
	return &authv3.CheckResponse{
		Status:       &rpcstatus.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: ok},
		DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			gateway.MetadataNamespace: structpb.NewStringValue(identity.Namespace),
			gateway.MetadataKeyID:     structpb.NewStringValue(identity.KeyID),
			gateway.MetadataReason:    structpb.NewStringValue("allowed"),
		}},
	}
}

// deny refuses with an error of the wire's form.
func deny(e *gateway.Error) *authv3.CheckResponse {
	denied := &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(e.Status)},
		Headers: []*corev3.HeaderValueOption{overwrite("content-type", "application/json")},
		Body:    string(e.Body()),
	}
	for _, h := range e.Headers() {
		denied.Headers = append(denied.Headers, overwrite(h.Name, h.Value))
	}
	return &authv3.CheckResponse{
		Status:       &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied},
	}
}

func overwrite(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// recorder is an HTTP server that keeps what it is sent, and answers 200 unless it has a handler.
type recorder struct {
	endpoint xds.Endpoint
	server   *http.Server

	stream http.HandlerFunc // answers instead, before the body is read; set it before the first request

	mu      sync.Mutex
	handler http.HandlerFunc
	seen    []*http.Request
}

func newRecorder(t *testing.T, socket string) *recorder {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{endpoint: xds.Endpoint("unix:" + socket)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		_ = r.server.Close() // listeners and connections, in a test
		<-done
	})
	return r
}

// ServeHTTP records the request, its body and trailers read to their end.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.stream != nil {
		r.stream(w, request)
		return
	}
	_, _ = io.Copy(io.Discard, request.Body) // a client that leaves is recorded as well
	r.mu.Lock()
	r.seen = append(r.seen, request)
	handler := r.handler
	r.mu.Unlock()
	if handler != nil {
		handler(w, request)
	}
}

func (r *recorder) handle(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler = h
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// last returns the last request, and fails the test if there is none.
func (r *recorder) last(t *testing.T) *http.Request {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		t.Fatal("no request arrived")
	}
	return r.seen[len(r.seen)-1]
}
