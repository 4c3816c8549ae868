package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"sallyport/gateway"
	"sallyport/memory"
	"sallyport/memory/agent"
	"sallyport/memory/refusal"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 4 << 20

// maxCall bounds one call, so that nobody waits for ever behind a store that hangs.
const maxCall = 30 * time.Second

// maxConnectionName bounds the name that a client gives its MCP session, in bytes.
const maxConnectionName = 256

// NewHandler serves the operations of a service. Everything but /healthz and unknown paths needs the identity that the
// gateway sets in the headers named. A nil logger is slog.Default().
func NewHandler(service *memory.Service, surface Surface, headers gateway.Headers, log *slog.Logger) http.Handler {
	if log == nil {
		log = slog.Default()
	}
	h := &handler{service: service, surface: surface, log: log}
	guarded := gateway.Middleware(headers, http.HandlerFunc(h.route))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
			h.health(w, r)
		case r.URL.Path == "/mcp", strings.HasPrefix(r.URL.Path, "/v1/"):
			guarded.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

type handler struct {
	service *memory.Service
	surface Surface
	log     *slog.Logger
}

// health answers ok as long as the store can be read.
func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), bound)
	defer cancel()
	if err := h.service.Ready(ctx); err != nil {
		h.log.ErrorContext(r.Context(), "not healthy", "error", err)
		gateway.WriteError(w, &gateway.Error{
			Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "the store cannot be read", Cause: err,
		})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok") // whoever asked is gone if this fails
}

func (h *handler) route(w http.ResponseWriter, r *http.Request) {
	if id, ok := gateway.FromContext(r.Context()); ok {
		if err := h.service.Admit(id.Namespace); err != nil {
			h.fail(w, r, err)
			return
		}
	}
	if r.URL.Path == "/mcp" {
		h.mcp(w, r)
		return
	}
	h.rest(w, r, strings.TrimPrefix(r.URL.Path, "/v1/"))
}

func (h *handler) rest(w http.ResponseWriter, r *http.Request, operation string) {
	name, ok := h.surface.operations[operation]
	if !ok {
		h.fail(w, r, &gateway.Error{Status: http.StatusNotFound, Code: gateway.CodeNotFound, Message: "there is no operation of this name"})
		return
	}
	if r.Method != http.MethodPost {
		h.fail(w, r, wrongMethod(http.MethodPost))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	result, err := h.call(r, name, body)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, result)
}

// call runs one tool with the raw arguments.
func (h *handler) call(r *http.Request, name string, raw []byte) (any, error) {
	a, err := parseArguments(raw)
	if err != nil {
		return nil, err
	}
	c, err := callerOf(r)
	if err != nil {
		return nil, err
	}
	if err := reach(c, a); err != nil {
		return nil, err
	}
	tool, ok := h.surface.tool(name)
	if !ok {
		return nil, refusal.New("unknown tool %q: tools/list names those there are", name)
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxCall)
	defer cancel()
	return tool.call(ctx, h.service, c, a)
}

// callerOf is on whose behalf the request is. The pod that the key names is the session; a client that names an MCP
// session of its own tells itself from others in the same pod.
func callerOf(r *http.Request) (memory.Caller, error) {
	id, ok := gateway.FromContext(r.Context())
	if !ok {
		return memory.Caller{}, errors.New("the request passed no gateway middleware")
	}
	connection := r.Header.Get("Mcp-Session-Id")
	if len(connection) > maxConnectionName {
		return memory.Caller{}, refusal.Shape("Mcp-Session-Id is longer than %d bytes", maxConnectionName)
	}
	return memory.Caller{Namespace: id.Namespace, Agent: id.Agent, Owner: agent.Owner{Pod: id.Session, Connection: connection}}, nil
}

// reach refuses arguments that name data the key does not reach. Nothing here is looked up by these names, so this is
// for the caller: a mistake is told instead of being answered from the wrong memory.
func reach(c memory.Caller, a arguments) error {
	if ns, given := a.text("namespace"); given && ns != c.Namespace {
		return refusal.Reach("this key is for another namespace than the one named; leave namespace out, it follows from the key")
	}
	if id, given := a.text("agent_id"); given && c.Agent != "" && id != c.Agent {
		return refusal.Reach("this key is for agent %q only", c.Agent)
	}
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &gateway.Error{Status: http.StatusRequestEntityTooLarge, Code: gateway.CodeInvalidArgument, Message: "the body is larger than 4 MiB"}
	case err != nil:
		return nil, &gateway.Error{Status: http.StatusBadRequest, Code: gateway.CodeInvalidArgument, Message: "the body could not be read to its end", Cause: err}
	}
	return body, nil
}

func wrongMethod(allow string) error {
	return &gateway.Error{Status: http.StatusMethodNotAllowed, Code: gateway.CodeMethodNotAllowed, Message: "use " + allow + " here", Allow: allow}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := encode(v)
	if err != nil {
		gateway.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // it is JSON and says so; the caller is gone if this fails
}

func encode(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
