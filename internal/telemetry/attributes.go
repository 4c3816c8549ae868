package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// harmless lets only attributes leave that cannot hold a credential or what a memory holds. Libraries note more than is
// asked of them: paths and queries, user agents, the texts of errors. A list of what may leave holds, too, when they learn
// to note something new.
type harmless struct{ sdktrace.SpanExporter }

// ExportSpans implements sdktrace.SpanExporter.
func (h harmless) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	out := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		out[i] = harmlessSpan{s}
	}
	return h.SpanExporter.ExportSpans(ctx, out)
}

// mayLeave are OpenTelemetry's names of what is of a fixed set, a number, or an address of ours.
var mayLeave = map[attribute.Key]bool{
	"http.request.method": true, "http.response.status_code": true, "http.route": true, "http.request.body.size": true, "http.response.body.size": true,
	"network.protocol.name": true, "network.protocol.version": true, "network.transport": true, "network.peer.address": true, "network.peer.port": true,
	"server.address": true, "server.port": true, "url.scheme": true, "error.type": true,
	"rpc.system": true, "rpc.system.name": true, "rpc.service": true, "rpc.method": true, "rpc.grpc.status_code": true, "rpc.response.status_code": true,
	"db.system.name": true, "db.operation.name": true, "db.collection.name": true,
}

type harmlessSpan struct{ sdktrace.ReadOnlySpan }

// Attributes implements sdktrace.ReadOnlySpan.
func (s harmlessSpan) Attributes() []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, a := range s.ReadOnlySpan.Attributes() {
		// On the side of a server, the address is what the caller wrote into Host.
		if mayLeave[a.Key] && (a.Key != "server.address" || s.SpanKind() == clientKind) {
			out = append(out, a)
		}
	}
	return out
}

// Events implements sdktrace.ReadOnlySpan. They hold the texts of errors and panics.
func (s harmlessSpan) Events() []sdktrace.Event { return nil }

// Links implements sdktrace.ReadOnlySpan.
func (s harmlessSpan) Links() []sdktrace.Link { return nil }

// Status implements sdktrace.ReadOnlySpan: the code without the text.
func (s harmlessSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}
