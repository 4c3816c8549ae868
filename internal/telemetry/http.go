package telemetry

import (
	"net/http"
	"regexp"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const clientKind = trace.SpanKindClient

// Handler returns h with a span for each request but those to /healthz, named by its route: route's, or that of the
// http.ServeMux in h if route is nil. A route is of a fixed set, "" if there is none for the request.
func (t *Tracing) Handler(h http.Handler, route func(r *http.Request) string) http.Handler {
	if t == nil {
		return h
	}
	routed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route != nil {
			r.Pattern = route(r)
		}
		h.ServeHTTP(w, r)
		if r.Pattern != "" {
			trace.SpanFromContext(r.Context()).SetAttributes(semconv.HTTPRoute(r.Pattern))
		}
	})
	return otelhttp.NewHandler(routed, "", otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagator),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" }))
}

// KubernetesTransport returns rt with a span for each call to the API server, named by the resource that it is about.
func (t *Tracing) KubernetesTransport(rt http.RoundTripper) http.RoundTripper {
	if t == nil {
		return rt
	}
	return otelhttp.NewTransport(rt, otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagator),
		otelhttp.WithFilter(func(r *http.Request) bool { return !r.URL.Query().Has("watch") }), // a watch lasts for minutes, of nobody's request
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + resourceOf(r.URL.Path) }))
}

// apiPath is a path of the Kubernetes API: what follows the version and, perhaps, the namespace is the resource.
var apiPath = regexp.MustCompile(`^/apis?/(?:[^/]+/)?v[^/]+/(?:namespaces/[^/]+/)?([a-z]+)`)

func resourceOf(path string) string {
	if m := apiPath.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return "discovery"
}
