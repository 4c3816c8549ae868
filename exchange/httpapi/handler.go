package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"sallyport/exchange"
	"sallyport/gateway"
)

// Handler serves an exchange.
type Handler struct {
	exchange *exchange.Exchange
	ready    func(ctx context.Context) error
	log      *slog.Logger
	mux      *http.ServeMux
	answers  *prometheus.CounterVec
}

// New returns a Handler. ready says whether the service can do its work, for GET /healthz.
func New(x *exchange.Exchange, ready func(ctx context.Context) error, log *slog.Logger) *Handler {
	h := &Handler{exchange: x, ready: ready, log: log, mux: http.NewServeMux(), answers: newAnswers()}
	for path, methods := range map[string]methods{
		"/v1/auth/kubernetes":    {http.MethodPost: h.mint},
		"/v1/keys/renew":         {http.MethodPost: h.renew},
		"/v1/keys":               {http.MethodGet: h.list, http.MethodPost: h.create},
		"/v1/keys/revoke":        {http.MethodPost: h.revokeMany},
		"/v1/keys/{id}":          {http.MethodDelete: h.revoke},
		"/v1/whoami":             {http.MethodGet: h.whoami},
		"/.well-known/jwks.json": {http.MethodGet: h.jwks},
		"/healthz":               {http.MethodGet: h.healthz},
	} {
		h.mux.Handle(path, h.route(path, methods))
	}
	h.mux.Handle("/", h.route("other", nil))
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// handler answers a request or returns why not; route writes the error.
type handler func(w http.ResponseWriter, r *http.Request) error

type methods map[string]handler

// allow lists the methods in the order of the Allow header.
func (m methods) allow() string {
	var out string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if m[method] == nil {
			continue
		}
		if out != "" {
			out += ", "
		}
		out += method
	}
	return out
}

func (h *Handler) route(path string, m methods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve, seen := m[r.Method], statusWriter{ResponseWriter: w, status: http.StatusOK}
		var err error
		switch {
		case len(m) == 0:
			err = &gateway.Error{Status: http.StatusNotFound, Code: gateway.CodeNotFound, Reason: "no_route", Message: "there is nothing at this path"}
		case serve == nil:
			err = &gateway.Error{
				Status: http.StatusMethodNotAllowed, Code: gateway.CodeMethodNotAllowed, Reason: "method", Allow: m.allow(),
				Message: "this path takes " + m.allow(),
			}
		default:
			err = serve(&seen, r)
		}
		if err != nil {
			e := h.refuse(w, r, err)
			h.count(path, e.Status, e.Reason)
			return
		}
		h.count(path, seen.status, "")
	})
}

// refuse is where every refusal is logged, with its reason and without what was presented.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) *gateway.Error {
	e := gateway.AsError(err)
	level := slog.LevelInfo
	if e.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.Int("status", e.Status), slog.String("code", string(e.Code)), slog.String("reason", e.Reason),
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("request_id", r.Header.Get("X-Request-Id")),
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.String("cause", e.Cause.Error()))
	}
	h.log.LogAttrs(r.Context(), level, "refused", attrs...)
	gateway.WriteError(w, e)
	return e
}
