// Package httpcheck carries the decision over HTTP, for gateways that ask that way: Envoy's HTTP ext_authz, nginx's
// auth_request, Traefik's ForwardAuth.
//
// The gateway sends the request's headers, without its body, to /check or to any path below it. The answer is 200 with the
// trusted headers, which the gateway copies to the request, or the denial as the caller should see it. The package has no
// rules of its own. What it cannot do over HTTP, the gateway's configuration has to: take the key away, and every header of
// the trusted prefix that a client sent.
package httpcheck

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// Path is where the question is asked; what follows it is the path that the caller asked for.
const Path = "/check"

// Decider decides: *extauthz.Authorizer.
type Decider interface {
	Decide(ctx context.Context, r extauthz.Request) extauthz.Decision
}

// Handler answers checks.
type Handler struct {
	decider Decider
	names   gateway.Headers
	log     *extauthz.DecisionLog
}

// New returns a Handler that sets the headers of names and has each decision in log.
func New(d Decider, names gateway.Headers, log *extauthz.DecisionLog) *Handler {
	return &Handler{decider: d, names: names, log: log}
}

// ServeHTTP implements http.Handler. The method does not count: each gateway uses one of its own.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, Path)
	switch {
	case r.URL.Path == "/healthz":
		w.WriteHeader(http.StatusOK)
		return
	case !ok || (rest != "" && rest[0] != '/'):
		gateway.WriteError(w, &gateway.Error{Status: http.StatusNotFound, Code: gateway.CodeNotFound, Message: "checks are asked at " + Path})
		return
	}
	asked := extauthz.ReadRequest(r.Header, h.names)
	began := time.Now()
	d := h.decider.Decide(r.Context(), asked.Request)
	if h.log.Wants(d) {
		method, path := original(r)
		h.log.Write(r.Context(), d, extauthz.Asked{Method: method, Path: path, RequestID: string(asked.RequestID), Took: time.Since(began)})
	}
	if !d.Allowed() {
		gateway.WriteError(w, d.Denial)
		return
	}
	for _, v := range h.names.Values(d.Identity) {
		w.Header().Set(v.Name, v.Value)
	}
	// Envoy's HTTP ext_authz takes these away from the request; other gateways ignore it.
	w.Header().Set("X-Envoy-Auth-Headers-To-Remove", strings.Join(extauthz.HeadersToRemove(d, h.names, asked.Forged), ","))
	w.WriteHeader(http.StatusOK)
}

// original is what the caller asked for, as far as the gateway says: Traefik and nginx (with the usual proxy_set_header)
// in headers, Envoy in the path. It is for the log alone.
func original(r *http.Request) (method, path string) {
	method, path = r.Method, strings.TrimPrefix(r.URL.Path, Path)
	if m := first(r.Header, "X-Forwarded-Method", "X-Original-Method"); m != "" {
		method = m
	}
	if p := first(r.Header, "X-Forwarded-Uri", "X-Original-Uri"); p != "" {
		path = p
	}
	return method, path
}

func first(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
