package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"sallyport/gateway"
)

// The codes of JSON-RPC that are used.
const (
	parseError     = -32700
	methodNotFound = -32601
	invalidParams  = -32602
)

// versions of MCP that are spoken, the preferred one first.
var versions = []string{"2025-06-18", "2025-03-26", "2024-11-05"}

// The name and version that the server tells. The version is that of the Memory API's reference, whose clients look at it.
const (
	serverName    = "sallyport-memory"
	serverVersion = "0.23.0"
)

type rpcRequest struct {
	id     json.RawMessage // nil in a notification
	method string
	params json.RawMessage
}

type rpcAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// mcp answers one JSON-RPC message with one.
func (h *handler) mcp(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete: // ends a session elsewhere; here sessions follow the key and end with their leases
		w.WriteHeader(http.StatusOK)
		return
	default:
		h.fail(w, r, wrongMethod("POST, DELETE"))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	req, ok := parseRPC(body)
	if !ok {
		writeJSON(w, http.StatusBadRequest, rpcAnswer{Version: "2.0", ID: json.RawMessage("null"), Error: &rpcError{parseError, "the body is not one JSON-RPC message; batches are not taken"}})
		return
	}
	if req.id == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result, rpcErr := h.answer(r, req)
	writeJSON(w, http.StatusOK, rpcAnswer{Version: "2.0", ID: req.id, Result: result, Error: rpcErr})
}

func parseRPC(body []byte) (rpcRequest, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m == nil {
		return rpcRequest{}, false
	}
	req := rpcRequest{id: m["id"], params: m["params"]}
	if method, given := m["method"]; given && json.Unmarshal(method, &req.method) != nil {
		return rpcRequest{}, false
	}
	return req, true
}

func (h *handler) answer(r *http.Request, req rpcRequest) (any, *rpcError) {
	switch req.method {
	case "ping":
		return struct{}{}, nil
	case "initialize":
		return h.initialize(req.params), nil
	case "tools/list":
		return map[string]any{"tools": h.surface.tools}, nil
	case "tools/call":
		return h.callTool(r, req.params)
	}
	return nil, &rpcError{methodNotFound, "there is no such method"}
}

func (h *handler) initialize(params json.RawMessage) any {
	var asked struct {
		Version string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &asked) // whatever else was asked, the preferred version is the answer
	version := versions[0]
	if slices.Contains(versions, asked.Version) {
		version = asked.Version
	}
	return map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{"tools": struct{}{}},
		"serverInfo":      map[string]any{"name": serverName, "version": serverVersion},
		"instructions":    h.surface.instructions,
	}
}

type toolResult struct {
	Content []toolContent `json:"content"`
	IsError bool          `json:"isError"`
}

type toolContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (h *handler) callTool(r *http.Request, params json.RawMessage) (any, *rpcError) {
	var call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if p := bytes.TrimSpace(params); len(p) == 0 || p[0] != '{' || json.Unmarshal(p, &call) != nil {
		return nil, &rpcError{invalidParams, "tools/call takes an object with name and arguments"}
	}
	result, err := h.call(r, call.Name, call.Arguments)
	if err != nil {
		e := failure(err)
		h.note(r.Context(), e)
		return toolResult{Content: []toolContent{{"text", e.Message}}, IsError: true}, nil
	}
	text, err := encode(result)
	if err != nil {
		e := gateway.AsError(err)
		h.note(r.Context(), e)
		return toolResult{Content: []toolContent{{"text", e.Message}}, IsError: true}, nil
	}
	return toolResult{Content: []toolContent{{"text", string(text)}}}, nil
}
