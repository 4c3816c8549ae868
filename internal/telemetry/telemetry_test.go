package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"sallyport/internal/keystore"
	"sallyport/internal/telemetry"
	"sallyport/internal/telemetry/collectortest"
	"sallyport/internal/unary"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampled = "00-" + traceID + "-00f067aa0ba902b7-01"
	passed  = "00-" + traceID + "-00f067aa0ba902b7-00"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// tracing returns one that sends to a collector, with more variables.
func tracing(t *testing.T, variables ...string) (*telemetry.Tracing, *collectortest.Collector) {
	t.Helper()
	c := collectortest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.GRPC)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	for i := 0; i < len(variables); i += 2 {
		t.Setenv(variables[i], variables[i+1])
	}
	tr, err := telemetry.New(t.Context(), "sallyport-test", "v1", quiet())
	if err != nil || tr == nil {
		t.Fatalf("%v, %v", tr, err)
	}
	return tr, c
}

// spans ends the tracing and returns what came of it, a line each.
func spans(t *testing.T, tr *telemetry.Tracing, c *collectortest.Collector) []string {
	t.Helper()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range c.Spans() {
		out = append(out, s.Service+" "+s.Name)
	}
	slices.Sort(out)
	return out
}

func TestItIsOffUnlessTheVariablesNameACollector(t *testing.T) {
	for name, variables := range map[string][]string{
		"nothing is said":  {},
		"it is disabled":   {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_SDK_DISABLED", "true"},
		"there is no path": {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(variables); i += 2 {
				t.Setenv(variables[i], variables[i+1])
			}
			tr, err := telemetry.New(t.Context(), "sallyport-test", "v1", quiet())
			if tr != nil || err != nil {
				t.Fatalf("%v, %v", tr, err)
			}
			if tr.GRPCServer() != nil || tr.Keystore(nil, "") != nil || tr.Handler(nil, nil) != nil || tr.KubernetesTransport(nil) != nil || tr.Close() != nil {
				t.Error("it wraps something though it is off")
			}
		})
	}
}

func TestWhatCannotBeIsSaidAtTheStart(t *testing.T) {
	for endpoint, more := range map[string]string{
		"collector:4317":               "",
		"http://user:hunter2@":         "",
		"ftp://collector":              "",
		"http://127.0.0.1:1/carrier":   "OTEL_EXPORTER_OTLP_PROTOCOL=pigeon",
		"http://127.0.0.1:1/no-zipkin": "OTEL_TRACES_EXPORTER=zipkin",
	} {
		t.Run(endpoint, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			if name, value, ok := strings.Cut(more, "="); ok {
				t.Setenv(name, value)
			}
			if _, err := telemetry.New(t.Context(), "s", "v1", quiet()); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTheSenderSaysWhatIsTraced(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	ask := func(tr *telemetry.Tracing, header string) {
		r := httptest.NewRequest(http.MethodGet, "/v1/x", nil)
		r.Header.Set("Traceparent", header)
		tr.Handler(ok, nil).ServeHTTP(httptest.NewRecorder(), r)
	}
	tr, c := tracing(t)
	ask(tr, passed)
	ask(tr, "")
	ask(tr, sampled)
	if got := spans(t, tr, c); len(got) != 1 || c.Spans()[0].Trace != traceID || c.Spans()[0].Parent != "00f067aa0ba902b7" {
		t.Errorf("%v", c.Spans())
	}
	t.Run("unless a variable says otherwise", func(t *testing.T) {
		tr, c := tracing(t, "OTEL_TRACES_SAMPLER", "parentbased_always_on")
		ask(tr, "")
		if got := spans(t, tr, c); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}

func TestHTTPSpansHaveTheNameOfTheirRoute(t *testing.T) {
	tr, c := tracing(t, "OTEL_TRACES_SAMPLER", "always_on", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "OTEL_SERVICE_NAME", "mine")
	mux := http.NewServeMux()
	for _, path := range []string{"/keys/{id}", "/healthz", "/"} {
		mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.HTTP)
	tr2, err := telemetry.New(t.Context(), "s", "v1", quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() }) // it has sent nothing
	for _, path := range []string{"/keys/1", "/healthz", "/nothing/here"} {
		tr2.Handler(mux, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	own := func(r *http.Request) string { return strings.TrimSuffix(r.URL.Path, "/secret") }
	tr2.Handler(http.NotFoundHandler(), own).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/v1/recall/secret", nil))
	if got := spans(t, tr2, c); !slices.Equal(got, []string{"mine GET /", "mine GET /keys/{id}", "mine HTTP /v1/recall"}) {
		t.Errorf("%v", got)
	}
	for _, s := range c.Spans() {
		if _, route, _ := strings.Cut(s.Name, " "); s.Attributes["http.route"] != route {
			t.Errorf("%s has the route %q", s.Name, s.Attributes["http.route"])
		}
	}
}

func TestNothingOfTheCallersWordsLeaves(t *testing.T) {
	const secret = "rcl_secret"
	tr, c := tracing(t, "OTEL_TRACES_SAMPLER", "always_on")
	h := tr.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := httptest.NewRequest(http.MethodGet, "https://api/api/v1/namespaces/"+secret+"/pods/"+secret+"?"+secret, nil).WithContext(r.Context())
		_, err := tr.KubernetesTransport(failing(secret)).RoundTrip(up)
		if err == nil {
			t.Error("no error")
		}
		_, _ = tr.Keystore(store{err: errors.New(secret)}, "sqlite:x").Key(r.Context(), secret) // what it answers is not the point
		w.WriteHeader(http.StatusInternalServerError)
	}), nil)
	r := httptest.NewRequest("M"+secret, "/"+secret+"?"+secret, strings.NewReader(secret))
	r.Host = secret
	for _, name := range []string{"Authorization", "User-Agent", "X-Forwarded-For", "Tracestate", "Baggage", "Cookie", "X-Request-Id"} {
		r.Header.Set(name, "a="+secret)
	}
	r.Header.Set("Traceparent", sampled)
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got := spans(t, tr, c); !slices.Equal(got, []string{"sallyport-test GET pods", "sallyport-test HTTP", "sallyport-test SELECT keys"}) {
		t.Errorf("%v", got)
	}
	if strings.Contains(c.Text(), secret) {
		t.Errorf("a word of the caller's is in\n%s", c.Text())
	}
}

type failing string

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New(string(f)) }

// store answers with an error.
type store struct {
	keystore.Store
	err error
}

func (s store) AddKey(context.Context, keystore.Record) error { return s.err }

func (s store) Key(context.Context, string) (keystore.Record, error) { return keystore.Record{}, s.err }

func (s store) Introspect(context.Context, string) (keystore.Introspection, error) {
	return keystore.Introspection{}, s.err
}

func (s store) Revoke(context.Context, string, string, time.Time) error { return s.err }

func (s store) RevokeMatching(context.Context, keystore.Selector, string, time.Time) ([]keystore.Record, error) {
	return nil, s.err
}

func TestKeyStoreSpansSayWhatWasDone(t *testing.T) {
	for name, c := range map[string]struct {
		operation string
		call      func(context.Context, keystore.Store) error
	}{
		"a key is added": {"INSERT", func(ctx context.Context, s keystore.Store) error { return s.AddKey(ctx, keystore.Record{}) }},
		"a key is read": {"SELECT", func(ctx context.Context, s keystore.Store) error {
			_, err := s.Key(ctx, "1")
			return err
		}},
		"a key is introspected": {"SELECT", func(ctx context.Context, s keystore.Store) error {
			_, err := s.Introspect(ctx, "1")
			return err
		}},
		"a key is revoked": {"UPDATE", func(ctx context.Context, s keystore.Store) error { return s.Revoke(ctx, "1", "", time.Time{}) }},
		"keys are revoked at once": {"UPDATE", func(ctx context.Context, s keystore.Store) error {
			_, err := s.RevokeMatching(ctx, keystore.Selector{All: true}, "", time.Time{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tr, collector := tracing(t, "OTEL_TRACES_SAMPLER", "always_on")
			for address, err := range map[string]error{"sqlite:/x": keystore.ErrNotFound, "postgres://h/d": context.DeadlineExceeded} {
				if got := c.call(t.Context(), tr.Keystore(store{err: err}, address)); !errors.Is(got, err) {
					t.Error(got)
				}
			}
			want := "sallyport-test " + c.operation + " keys"
			if got := spans(t, tr, collector); !slices.Equal(got, []string{want, want}) {
				t.Errorf("%v", got)
			}
			for _, s := range collector.Spans() {
				a := s.Attributes
				if failed := a["db.system.name"] == "postgresql"; (a["error.type"] != "") != failed || a["db.operation.name"] != c.operation || a["db.collection.name"] != "keys" {
					t.Errorf("%v", a)
				}
			}
		})
	}
}

func TestGRPCCallsButHealthChecksAreTraced(t *testing.T) {
	tr, c := tracing(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const check = "/envoy.service.auth.v3.Authorization/Check"
	server := unary.New(map[string]unary.Handler{
		check:                                func(context.Context, []byte) ([]byte, unary.Later, error) { return nil, nil, errors.New("no") },
		healthv1.Health_Check_FullMethodName: func(context.Context, []byte) ([]byte, unary.Later, error) { return nil, nil, nil },
	}, unary.Options{MaxRequestBytes: 1 << 10, Metadata: []string{"traceparent"}, ConnectionAge: time.Hour, Drain: time.Second, Stats: tr.GRPCServer()})
	serving, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.Serve(serving, l) })
	defer ended.Wait()
	defer stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the server ends
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", sampled)
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Invoke(ctx, check, &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{}); err == nil {
		t.Error("it was not refused")
	}
	if got := spans(t, tr, c); !slices.Equal(got, []string{"sallyport-test envoy.service.auth.v3.Authorization/Check"}) || c.Spans()[0].Trace != traceID {
		t.Errorf("%v", c.Spans())
	}
}

func TestTheTraceOfARequestIsKnownWithoutSpans(t *testing.T) {
	for header, want := range map[string]string{sampled: traceID, passed: traceID, "": "", "rcl_secret": "", "00-zz": ""} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", header))
		if got := telemetry.TraceID(ctx); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
	if got := telemetry.TraceID(t.Context()); got != "" {
		t.Errorf("no request: %q", got)
	}
}

func TestACollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	tr, c := tracing(t, "OTEL_TRACES_SAMPLER", "always_on", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_BSP_MAX_QUEUE_SIZE", "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
	h := tr.Handler(http.NotFoundHandler(), nil)
	for range 1000 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	if err := tr.Close(); err == nil || len(c.Spans()) != 0 {
		t.Errorf("Close = %v", err)
	}
}
