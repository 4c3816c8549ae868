package checkserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"sallyport/extauthz"
	"sallyport/extauthz/checkserver"
	"sallyport/gateway"
)

// decide is a Decider that keeps what it was asked, unless it knows its answer beforehand.
type decide struct {
	asked extauthz.Request
	say   extauthz.Decision
	known bool
}

// Begin implements checkserver.Decider.
func (d *decide) Begin(extauthz.Request) (extauthz.Decision, bool) { return d.say, d.known }

// Continue implements checkserver.Decider.
func (d *decide) Continue(_ context.Context, r extauthz.Request) extauthz.Decision {
	d.asked = r
	return d.say
}

var allowed = extauthz.Decision{
	Reason:   extauthz.ReasonAllowed,
	Identity: gateway.Identity{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", KeyID: "00ff"},
}

// rawRequest is a CheckRequest as Envoy sends it with encode_raw_headers.
func rawRequest(lines ...string) *authv3.CheckRequest {
	h := &corev3.HeaderMap{}
	for i := 0; i < len(lines); i += 2 {
		h.Headers = append(h.Headers, &corev3.HeaderValue{Key: lines[i], RawValue: []byte(lines[i+1])})
	}
	return requestWith(&authv3.AttributeContext_HttpRequest{HeaderMap: h})
}

func requestWith(r *authv3.AttributeContext_HttpRequest) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{Http: r}}}
}

func check(t *testing.T, d *decide, r *authv3.CheckRequest) (*authv3.CheckResponse, string) {
	t.Helper()
	var log bytes.Buffer
	service := checkserver.NewService(d, gateway.DefaultHeaders(), decisions(t, slog.NewJSONHandler(&log, nil)))
	conn, stop := serve(t, service)
	defer stop()
	out, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), r, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("Check returned an error, which lets failure_mode_allow decide: %v", err)
	}
	return out, log.String()
}

func decisions(t *testing.T, h slog.Handler) *extauthz.DecisionLog {
	t.Helper()
	log, err := extauthz.NewDecisionLog(slog.New(h), extauthz.LogRates{Denials: 10}, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// serve serves on a socket of its own until stop is called, which waits for the end.
func serve(t *testing.T, service *checkserver.Service) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authz.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err = grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, l, nil) }()
	return conn, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v", err)
		}
		_ = conn.Close()
	}
}

func TestEveryLineReachesTheDecisionAsItWasSent(t *testing.T) {
	d := &decide{say: allowed}
	check(t, d, rawRequest(
		"authorization", "Bearer a", "Authorization", "Bearer \xff", "accept", "x",
		"x-sallyport-namespace", "n1", "X-Sallyport_Agent", "a1", "sallyport-claimed-session", "s1",
	))
	if got := bytes.Join(d.asked.Authorization, []byte("|")); string(got) != "Bearer a|Bearer \xff" {
		t.Errorf("authorization = %q", d.asked.Authorization)
	}
	want := []gateway.HeaderValue{{Name: "namespace", Value: "n1"}, {Name: "Agent", Value: "a1"}, {Name: "session", Value: "s1"}}
	if !slices.Equal(d.asked.Claimed, want) {
		t.Errorf("claimed = %v", d.asked.Claimed)
	}
}

func TestAnEnvoyThatSendsAMapIsUnderstoodToo(t *testing.T) {
	d := &decide{say: allowed}
	check(t, d, requestWith(&authv3.AttributeContext_HttpRequest{Headers: map[string]string{"authorization": "Bearer a", "x-sallyport-agent": "b"}}))
	if len(d.asked.Authorization) != 1 || string(d.asked.Authorization[0]) != "Bearer a" || len(d.asked.Claimed) != 1 {
		t.Errorf("%+v", d.asked)
	}
	check(t, d, &authv3.CheckRequest{}) // and one that sends nothing does no harm
	if d.asked.Authorization != nil || d.asked.Claimed != nil {
		t.Errorf("%+v", d.asked)
	}
}

func TestWhatIsKnownIsAnsweredAtOnce(t *testing.T) {
	d := &decide{say: allowed, known: true}
	if out, _ := check(t, d, rawRequest("authorization", "Bearer a")); out.GetOkResponse() == nil || d.asked.Authorization != nil {
		t.Errorf("%v, after waiting for %v", out, d.asked)
	}
}

func TestOnAllowTheTrustedHeadersAreSetAndTheKeyAndForgeriesGo(t *testing.T) {
	out, log := check(t, &decide{say: allowed}, rawRequest(
		"authorization", "Bearer secret", "x-sallyport-namespace", "agents:run-1", "x-sallyport-color", "red",
		"x-sallyport-session", "forged", "sallyport-claimed-namespace", "agents:run-1",
	))
	ok := out.GetOkResponse()
	if out.GetStatus().GetCode() != 0 || ok == nil {
		t.Fatalf("%v", out)
	}
	set := map[string]string{}
	for _, h := range ok.GetHeaders() {
		set[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
		if h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			t.Errorf("%s does not overwrite", h.GetHeader().GetKey())
		}
	}
	if len(set) != 4 || set["x-sallyport-namespace"] != "agents:run-1" || set["x-sallyport-key-id"] != "00ff" {
		t.Errorf("set %v", set)
	}
	// The key has no session: the forged one must go, and nothing that is set may be removed.
	want := []string{"authorization", "x-sallyport-color", "x-sallyport-session", "sallyport-claimed-namespace"}
	if got := ok.GetHeadersToRemove(); !slices.Equal(got, want) {
		t.Errorf("removed %v, want %v", got, want)
	}
	if out.GetDynamicMetadata().GetFields()["namespace"].GetStringValue() != "agents:run-1" {
		t.Errorf("metadata = %v", out.GetDynamicMetadata())
	}
	if log != "" {
		t.Errorf("an allow was logged: %s", log)
	}
}

func TestADenialIsTheContractsJSONAndIsLoggedWithoutWhatWasPresented(t *testing.T) {
	denied := extauthz.Decision{Reason: "revoked", Identity: gateway.Identity{KeyID: "00ff"}, Denial: &gateway.Error{
		Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "try again", RetryAfter: time.Second,
	}}
	r := rawRequest("authorization", "Bearer topsecret", "x-request-id", "req-7")
	r.Attributes.Request.Http.Path = "/v1/recall?token=alsosecret"
	out, log := check(t, &decide{say: denied}, r)
	d := out.GetDeniedResponse()
	if d == nil || int(d.GetStatus().GetCode()) != 503 || out.GetStatus().GetCode() == 0 {
		t.Fatalf("%v", out)
	}
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(d.GetBody()), &body); err != nil || body.Error.Code != "unavailable" {
		t.Errorf("body = %s, %v", d.GetBody(), err)
	}
	headers := map[string]string{}
	for _, h := range d.GetHeaders() {
		headers[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
	}
	if headers["retry-after"] != "1" || headers["content-type"] != "application/json" {
		t.Errorf("headers = %v", headers)
	}
	if !strings.Contains(log, `"reason":"revoked"`) || !strings.Contains(log, "req-7") || !strings.Contains(log, "/v1/recall") || strings.Contains(log, "secret") {
		t.Errorf("log = %s", log)
	}
}

func TestServeAnswersHealthAndFinishesWhatItHasBegun(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := waits(func() extauthz.Decision { close(began); <-goOn; return allowed })
	conn, stop := serve(t, checkserver.NewService(slow, gateway.DefaultHeaders(), decisions(t, slog.DiscardHandler)))
	state, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || state.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("health = %v, %v", state, err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := authv3.NewAuthorizationClient(conn).Check(context.Background(), rawRequest())
		answered <- err
	}()
	<-began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	close(goOn)
	if err := <-answered; err != nil {
		t.Errorf("what was begun was cut off: %v", err)
	}
	<-stopped
}

// waits is a Decider that has to wait each time.
type waits func() extauthz.Decision

// Begin implements checkserver.Decider.
func (w waits) Begin(extauthz.Request) (extauthz.Decision, bool) { return extauthz.Decision{}, false }

// Continue implements checkserver.Decider.
func (w waits) Continue(context.Context, extauthz.Request) extauthz.Decision { return w() }
