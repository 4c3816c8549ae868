// Package telemetry makes OpenTelemetry spans of what the services do and sends them to a collector (OTLP), as the standard
// OTEL_ variables say. It is off unless they name a collector; a nil *Tracing is one that is off, and costs nothing.
//
// It keeps no credential from the code that it watches, but from the collector: only attributes that cannot hold one leave
// the process (see attributes.go). It makes no metrics; those are Prometheus's.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// The protocols of OTEL_EXPORTER_OTLP_PROTOCOL that are spoken.
const (
	protocolHTTP = "http/protobuf" // what the specification has for a default
	protocolGRPC = "grpc"
)

// flushBound is how long a service that ends waits for its last spans to be taken.
const flushBound = 3 * time.Second

// scope names this instrumentation in spans.
const scope = "sallyport/internal/telemetry"

// Tracing makes and sends the spans of one service. Nil is off.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns the tracing of a service, nil if the variables do not ask for it. Nothing is sent yet, and a collector that
// is away costs its spans: they wait in a queue of OTEL_BSP_MAX_QUEUE_SIZE (2048) and are dropped when it is full.
//
// A request is traced if whoever sent it says so. Where a trace may begin here, OTEL_TRACES_SAMPLER says; unset, nowhere:
// the gateway samples, and a door does not send a span for each check because there is a collector.
func New(ctx context.Context, service, version string, log *slog.Logger) (*Tracing, error) {
	if !asked() {
		return nil, nil //nolint:nilnil // off is a valid choice
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, err
	}
	// What comes later goes before what comes earlier: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("describe the service to the trace collector: %w", err), exporter.Shutdown(ctx))
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithBatcher(harmless{exporter})}
	if os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("spans could not be sent; they are dropped", "error", err)
	}))
	p := sdktrace.NewTracerProvider(options...)
	return &Tracing{provider: p, tracer: p.Tracer(scope)}, nil
}

// asked says whether the variables name a collector, and nothing turns tracing off.
func asked() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return endpoint() != ""
}

func endpoint() string {
	return first(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

func protocol() string {
	return first(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), protocolHTTP)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// newExporter reads the rest of the variables by itself: endpoint, headers, certificates, time limits.
func newExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	if e := os.Getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: spans are sent by otlp, or by none", e)
	}
	u, err := url.Parse(endpoint())
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// The address is not shown: it may hold a password.
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT is no address of a collector: write http://HOST:PORT or https://HOST:PORT")
	}
	var client otlptrace.Client
	switch p := protocol(); p {
	case protocolGRPC:
		client = otlptracegrpc.NewClient()
	case protocolHTTP:
		client = otlptracehttp.NewClient()
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%s: give %s or %s", p, protocolGRPC, protocolHTTP)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of spans: %w", err)
	}
	return exporter, nil
}

// Close sends the spans that wait, within three seconds, and ends the tracing.
func (t *Tracing) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushBound)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}
