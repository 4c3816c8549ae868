package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

// propagator reads traceparent alone: a number of fixed length. Callers fill tracestate and baggage with what they like,
// and that would be sent on and to the collector.
var propagator propagation.TextMapPropagator = parentAlone{}

type parentAlone struct{ propagation.TraceContext }

// Extract implements propagation.TextMapPropagator.
func (p parentAlone) Extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	return p.TraceContext.Extract(ctx, traceparent(from.Get("traceparent")))
}

// traceparent is a carrier that has nothing else.
type traceparent string

// Get implements propagation.TextMapCarrier.
func (p traceparent) Get(name string) string {
	if name == "traceparent" {
		return string(p)
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (p traceparent) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (p traceparent) Keys() []string { return []string{"traceparent"} }

// TraceID returns the trace that a request belongs to: that of its span or, where no span is made, what its gRPC metadata
// say; "" if neither does.
func TraceID(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		in := metadata.ValueFromIncomingContext(ctx, "traceparent")
		span = trace.SpanContextFromContext(propagator.Extract(ctx, traceparent(strings.Join(in, ","))))
	}
	if !span.HasTraceID() {
		return ""
	}
	return span.TraceID().String()
}
