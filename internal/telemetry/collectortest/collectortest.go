// Package collectortest is a collector of OpenTelemetry spans for tests, over gRPC and HTTP. It is no part of the program.
package collectortest

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// Span is what tests look at of a span.
type Span struct {
	Service    string // service.name
	Name       string
	Trace      string // in hexadecimal, as the next two
	ID         string
	Parent     string // empty for a root
	Attributes map[string]string
}

// Collector keeps what it is sent.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	GRPC string // its HOST:PORT
	HTTP string // its URL

	mu    sync.Mutex
	spans []Span
	text  string
}

// Start starts a collector that ends with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{GRPC: l.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // Stop ends it
	}()
	web := httptest.NewServer(http.HandlerFunc(c.post))
	c.HTTP = web.URL
	t.Cleanup(func() {
		web.Close()
		server.Stop()
		<-ended
	})
	return c
}

func (c *Collector) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in collectorv1.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), &in) // it does not fail
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, in *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text += prototext.Format(in)
	for _, of := range in.GetResourceSpans() {
		service := attributes(of.GetResource().GetAttributes())["service.name"]
		for _, scoped := range of.GetScopeSpans() {
			for _, s := range scoped.GetSpans() {
				c.spans = append(c.spans, span(service, s))
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func span(service string, s *tracev1.Span) Span {
	return Span{
		Service: service, Name: s.GetName(), Attributes: attributes(s.GetAttributes()),
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
	}
}

func attributes(list []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		out[a.GetKey()] = a.GetValue().GetStringValue()
		if _, text := a.GetValue().GetValue().(*commonv1.AnyValue_StringValue); !text {
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}

// Spans returns what has come so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Text is everything that has come so far, to look for what must not be in it.
func (c *Collector) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text
}
