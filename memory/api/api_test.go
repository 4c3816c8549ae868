package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/api"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

// rig is a server behind a front that does what the gateway does: it turns the bearer into trusted headers. A bearer of
// the tests is "<namespace>", and "/<session>" and "/<agent>" if need be.
type rig struct {
	*testing.T
	url string
	log *bytes.Buffer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	return newRigOn(t, store)
}

func newRigOn(t *testing.T, store memory.Store) *rig {
	t.Helper()
	return newRigWith(t, store, memory.Options{})
}

// newRigWith is newRigOn with more than the tests' vocabulary and log.
func newRigWith(t *testing.T, store memory.Store, o memory.Options) *rig {
	t.Helper()
	r := &rig{T: t, log: &bytes.Buffer{}}
	vocab := belief.Closed()
	logger := slog.New(slog.NewTextHandler(r.log, nil))
	o.Vocabulary, o.Logger = &vocab, logger
	service := memory.NewService(store, o)
	server := httptest.NewServer(front(api.NewHandler(service, api.Typed(false), gateway.DefaultHeaders(), logger)))
	t.Cleanup(func() {
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r.url = server.URL
	return r
}

func front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			parts := append(strings.Split(key, "/"), "", "")
			for _, h := range gateway.DefaultHeaders().Values(gateway.Identity{Namespace: parts[0], Session: parts[1], Agent: parts[2]}) {
				r.Header.Set(h.Name, h.Value)
			}
		}
		next.ServeHTTP(w, r)
	})
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// code is the code of an error, or of a JSON-RPC error.
func (a answer) code() string {
	var e struct {
		Error struct {
			Code any `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &e) != nil || e.Error.Code == nil {
		return ""
	}
	return fmt.Sprint(e.Error.Code)
}

func (r *rig) send(method, path, key, body string, headers ...string) answer {
	r.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // a test
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, data}
}

// tool calls a tool over MCP and returns its text, and whether it is an error.
func (r *rig) tool(key, name, arguments string, headers ...string) (text string, isError bool) {
	r.Helper()
	a := r.send("POST", "/mcp", key, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), headers...)
	var reply struct {
		Result struct {
			Content []struct{ Type, Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal(a.body, &reply); err != nil || a.status != http.StatusOK || len(reply.Result.Content) != 1 || reply.Result.Content[0].Type != "text" {
		r.Fatalf("%s: %d %s", name, a.status, a.body)
	}
	return reply.Result.Content[0].Text, reply.Result.IsError
}

func TestStatusesAndCodes(t *testing.T) {
	r := newRig(t)
	big := `{"query":"` + strings.Repeat("x", 4<<20-len(`{"query":""}`)) + `"}`
	for _, c := range []struct {
		rule, method, path, key, body string
		status                        int
		code                          string
	}{
		{"health needs no key", "GET", "/healthz", "", "", 200, ""},
		{"unknown paths need no key", "POST", "/nope", "", "{}", 404, ""},
		{"nor does the root", "GET", "/", "", "", 404, ""},
		{"a slash too many is unknown", "POST", "/mcp/", "ns", "{}", 404, ""},
		{"an unknown operation", "POST", "/v1/nope", "ns", "{}", 404, "not_found"},
		{"operations need the gateway", "POST", "/v1/recall", "", "{}", 401, "unauthenticated"},
		{"so does MCP", "POST", "/mcp", "", "{}", 401, "unauthenticated"},
		{"a namespace of a wrong form is none", "POST", "/v1/recall", "a b", "{}", 401, "unauthenticated"},
		{"reading with GET", "GET", "/v1/recall", "ns", "", 405, "method_not_allowed"},
		{"MCP with GET", "GET", "/mcp", "ns", "", 405, "method_not_allowed"},
		{"ending an MCP session does nothing", "DELETE", "/mcp", "ns", "", 200, ""},
		{"an empty body is an empty object", "POST", "/v1/predicates", "ns", "", 200, ""},
		{"null too", "POST", "/v1/predicates", "ns", "null", 200, ""},
		{"an array is not", "POST", "/v1/predicates", "ns", "[]", 400, "invalid_argument"},
		{"nor is half an object", "POST", "/v1/predicates", "ns", "{", 400, "invalid_argument"},
		{"nor two", "POST", "/v1/predicates", "ns", "{}{}", 400, "invalid_argument"},
		{"a refused operation", "POST", "/v1/recall", "ns", "{}", 400, "tool_error"},
		{"a wrong type", "POST", "/v1/recall", "ns", `{"subject":5}`, 400, "tool_error"},
		{"a wrong type for a strict operation", "POST", "/v1/timeline", "ns", `{"subject":5}`, 400, "invalid_argument"},
		{"an unknown member", "POST", "/v1/forget", "ns", `{"subject":"s","predicate":"name","all":true}`, 200, ""},
		{"an unknown member of a strict operation", "POST", "/v1/diff", "ns", `{"from":"2024-01-01T00:00:00Z","bogus":1}`, 400, "invalid_argument"},
		{"a body of 4 MiB", "POST", "/v1/recall", "ns", big, 200, ""},
		{"one byte more", "POST", "/v1/recall", "ns", big + " ", 413, "invalid_argument"},
		{"one byte more for MCP", "POST", "/mcp", "ns", big + " ", 413, "invalid_argument"},
		{"another namespace named in the body", "POST", "/v1/recall", "ns", `{"query":"x","namespace":"other"}`, 403, "namespace_mismatch"},
		{"in capitals", "POST", "/v1/recall", "ns", `{"query":"x","Namespace":"other"}`, 403, "namespace_mismatch"},
		{"as something that is no name", "POST", "/v1/recall", "ns", `{"query":"x","namespace":["ns"]}`, 403, "namespace_mismatch"},
		{"the key's own namespace named in the body", "POST", "/v1/recall", "ns", `{"query":"x","namespace":"ns"}`, 200, ""},
		{"another agent named in the body", "POST", "/v1/recall", "ns//worker", `{"query":"x","agent_id":"other"}`, 403, "namespace_mismatch"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			a := r.send(c.method, c.path, c.key, c.body)
			if a.status != c.status || a.code() != c.code {
				t.Errorf("got %d %q, want %d %q: %.200s", a.status, a.code(), c.status, c.code, a.body)
			}
			if c.status == http.StatusMethodNotAllowed && !strings.Contains(a.header.Get("Allow"), "POST") {
				t.Errorf("Allow is %q", a.header.Get("Allow"))
			}
			if c.status == http.StatusUnauthorized && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("WWW-Authenticate is %q", a.header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestJSONRPC(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		rule, body string
		status     int
		want       string // in the answer
	}{
		{"a ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"an id is given back as it was", `{"id":1.5,"method":"ping"}`, 200, `"id":1.5`},
		{"even null", `{"id":null,"method":"ping"}`, 200, `"id":null`},
		{"without an id there is no answer", `{"method":"ping"}`, 202, ""},
		{"whatever the method", `{"method":"nope"}`, 202, ""},
		{"not even to nothing", `{}`, 202, ""},
		{"no JSON", `not json`, 400, `"code":-32700`},
		{"nothing", ``, 400, `"code":-32700`},
		{"null", `null`, 400, `"code":-32700`},
		{"a batch", `[{"id":1,"method":"ping"}]`, 400, `"code":-32700`},
		{"something behind the message", `{"id":1,"method":"ping"} x`, 400, `"code":-32700`},
		{"an unknown method", `{"id":1,"method":"resources/list"}`, 200, `"code":-32601`},
		{"a method that is no string", `{"id":1,"method":5}`, 400, `"code":-32700`},
		{"tools/call without params", `{"id":1,"method":"tools/call"}`, 200, `"code":-32602`},
		{"with params that are no object", `{"id":1,"method":"tools/call","params":[]}`, 200, `"code":-32602`},
		{"an unknown tool", `{"id":1,"method":"tools/call","params":{"name":"zzz"}}`, 200, `unknown tool \"zzz\"`},
		{"arguments that are no object", `{"id":1,"method":"tools/call","params":{"name":"recall","arguments":"x"}}`, 200, `"isError":true`},
		{"an older version of MCP", `{"id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`, 200, `"protocolVersion":"2024-11-05"`},
		{"one that nobody speaks", `{"id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}`, 200, `"protocolVersion":"2025-06-18"`},
		{"none", `{"id":1,"method":"initialize"}`, 200, `"protocolVersion":"2025-06-18"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			a := r.send("POST", "/mcp", "ns", c.body)
			if a.status != c.status || !strings.Contains(string(a.body), c.want) || (c.want == "" && len(a.body) > 0) {
				t.Errorf("got %d %s, want %d and %s", a.status, a.body, c.status, c.want)
			}
		})
	}
}

func TestToolsAreDescribed(t *testing.T) {
	r := newRig(t)
	var list struct {
		Result struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              struct {
					Type       string
					Properties map[string]struct{ Description string }
				}
				Annotations *struct{ ReadOnlyHint, OpenWorldHint bool }
			}
		}
	}
	if err := json.Unmarshal(r.send("POST", "/mcp", "ns", `{"id":1,"method":"tools/list"}`).body, &list); err != nil {
		t.Fatal(err)
	}
	readers := " list_predicates recall explain memory_history timeline diff recent_turns fetch_output list_pointers pending_actions agent_context working_state_history "
	if n := len(list.Result.Tools); n != 25 {
		t.Errorf("%d tools, want 25", n)
	}
	for _, tool := range list.Result.Tools {
		if tool.Title == "" || tool.Description == "" || tool.InputSchema.Type != "object" {
			t.Errorf("%s is not described: %+v", tool.Name, tool)
		}
		for name, p := range tool.InputSchema.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s is not described", tool.Name, name)
			}
		}
		if reads := strings.Contains(readers, " "+tool.Name+" "); reads != (tool.Annotations != nil) || (reads && !tool.Annotations.ReadOnlyHint) {
			t.Errorf("%s: annotations %+v, want them exactly on what only reads", tool.Name, tool.Annotations)
		}
	}
}

func TestMCPTellsMismatches(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ rule, key, tool, arguments string }{
		{"another namespace", "ns", "recall", `{"query":"x","namespace":"other"}`},
		{"another namespace for an agent", "ns", "agent_resume", `{"agent_id":"a","namespace":"other"}`},
		{"another agent than the key's", "ns/pod/worker", "agent_resume", `{"agent_id":"other"}`},
		{"another agent for a memory tool", "ns/pod/worker", "remember", `{"agent_id":"other","subject":"s","predicate":"name","value":"x"}`},
		{"no agent at all, in capitals", "ns/pod/worker", "agent_release", `{"AGENT_ID":"other"}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if text, isError := r.tool(c.key, c.tool, c.arguments); !isError || !strings.HasPrefix(text, "namespace_mismatch:") {
				t.Errorf("got %q, error %v", text, isError)
			}
		})
	}
	if text, isError := r.tool("ns/pod/worker", "agent_resume", `{"agent_id":"worker"}`); isError {
		t.Errorf("its own agent: %s", text)
	}
}

func TestSessionsFollowTheKeyAndTheMCPSession(t *testing.T) {
	r := newRig(t)
	if text, isError := r.tool("ns/pod-1", "agent_resume", `{"agent_id":"a"}`); isError {
		t.Fatal(text)
	}
	for _, c := range []struct {
		rule, key, saying string
		headers           []string
	}{
		{"the same pod", "ns/pod-1", "already resumed", nil},
		{"another MCP session of the pod", "ns/pod-1", "lease is held", []string{"Mcp-Session-Id", "two"}},
		{"a newer pod", "ns/pod-2", "", nil},
		{"the older pod again", "ns/pod-1", "lease is held", nil},
		{"a name that is too long", "ns/pod-2", "longer", []string{"Mcp-Session-Id", strings.Repeat("x", 257)}},
	} {
		text, isError := r.tool(c.key, "agent_resume", `{"agent_id":"a"}`, c.headers...)
		if isError != (c.saying != "") || !strings.Contains(text, c.saying) {
			t.Errorf("%s: got %q, error %v", c.rule, text, isError)
		}
	}
	if text, _ := r.tool("ns/pod-1", "record_turn", `{"agent_id":"a","role":"user","content":"x"}`); !strings.Contains(text, "lease was lost") {
		t.Errorf("got %q", text)
	}
}

// TestCanary fills one namespace and looks for any trace of it from another, by every name and id that it learned.
func TestCanary(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { canary(newRig(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		store, err := pgstore.Open(context.Background(), pgtest.Start(t).Database(t))
		if err != nil {
			t.Fatal(err)
		}
		canary(newRigOn(t, store))
	})
}

func canary(r *rig) {
	t := r.T
	const canary = "canary7f3a"
	learned := r.send("POST", "/v1/remember", "one", `{"subject":"`+canary+`","predicate":"name","value":"`+canary+`"}`).body
	r.send("POST", "/v1/remember", "one", `{"text":"about `+canary+`","statements":[]}`)
	for _, call := range []struct{ tool, arguments string }{
		{"agent_resume", `{"agent_id":"` + canary + `"}`},
		{"update_working_state", `{"agent_id":"` + canary + `","goal":"` + canary + `"}`},
		{"record_turn", `{"agent_id":"` + canary + `","role":"user","content":"` + canary + `"}`},
		{"store_output", `{"agent_id":"` + canary + `","content":"` + canary + `","ref":"` + canary + `"}`},
		{"set_pointer", `{"agent_id":"` + canary + `","name":"` + canary + `","type":"object","fields":{"uri":"` + canary + `"}}`},
		{"begin_action", `{"agent_id":"` + canary + `","tool":"` + canary + `","class":"idempotent"}`},
	} {
		if text, isError := r.tool("one", call.tool, call.arguments); isError {
			t.Fatalf("%s: %s", call.tool, text)
		}
	}
	var stored struct {
		Stored struct {
			EventID string `json:"event_id"`
		}
	}
	if err := json.Unmarshal(learned, &stored); err != nil {
		t.Fatal(err)
	}
	// The canary's value must not come back. The subject and ids of a question may, so these are asked for by other words.
	quiet := func(what, text string) {
		t.Helper()
		if strings.Contains(strings.ReplaceAll(text, `"subject":"`+canary+`"`, ""), canary) || strings.Contains(text, stored.Stored.EventID) {
			t.Errorf("%s: %s", what, text)
		}
	}
	for path, body := range map[string]string{
		"recall":     `{"subject":"` + canary + `"}`,
		"explain":    `{"question":"` + canary + `"}`,
		"history":    `{"subject":"` + canary + `","predicate":"name"}`,
		"timeline":   `{"subject":"` + canary + `","predicate":"name"}`,
		"diff":       `{"from":"2000-01-01T00:00:00Z"}`,
		"predicates": `{}`,
		"forget":     `{"subject":"` + canary + `","predicate":"name"}`,
		"remember":   `{"subject":"user","predicate":"role","value":"x","replaces":[{"predicate":"name","value":"x"}]}`,
	} {
		quiet(path, string(r.send("POST", "/v1/"+path, "two", body).body))
	}
	quiet("recall by words", string(r.send("POST", "/v1/recall", "two", `{"query":"`+canary+`"}`).body))
	if text, isError := r.tool("two", "fetch_output", `{"agent_id":"`+canary+`","ref":"`+canary+`"}`); !isError {
		t.Errorf("an output: %s", text)
	}
	if text, isError := r.tool("two", "agent_resume", `{"agent_id":"`+canary+`"}`); isError || !strings.Contains(text, `"fresh":true`) {
		t.Errorf("an agent of the same name: %s", text)
	}
	if text, isError := r.tool("two", "fetch_output", `{"agent_id":"`+canary+`","ref":"`+canary+`"}`); !isError {
		t.Errorf("an output of an agent of the same name: %s", text)
	}
	for _, tool := range []string{"recent_turns", "list_pointers", "pending_actions", "working_state_history"} {
		if text, _ := r.tool("two", tool, `{"agent_id":"`+canary+`"}`); text != "[]" {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if got := string(r.send("POST", "/v1/recall", "one", `{"subject":"`+canary+`"}`).body); !strings.Contains(got, canary) {
		t.Errorf("the canary is gone: %s", got)
	}
}

func TestAFaultOfTheServerTellsNothingOfItsCause(t *testing.T) {
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	server := httptest.NewServer(front(api.NewHandler(memory.NewService(store, memory.Options{}), api.Typed(false), gateway.DefaultHeaders(), logger)))
	defer server.Close()
	r := &rig{T: t, url: server.URL}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	a := r.send("POST", "/v1/recall", "ns", `{"query":"x"}`)
	if a.status != http.StatusInternalServerError || a.code() != "internal" || strings.Contains(string(a.body), "sql") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if text, isError := r.tool("ns", "recall", `{"query":"x"}`); !isError || strings.Contains(text, "sql") {
		t.Errorf("got %q", text)
	}
	if !strings.Contains(log.String(), "sql: database is closed") {
		t.Errorf("the log does not say why: %s", log)
	}
	if a := r.send("GET", "/healthz", "", ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("health is %d", a.status)
	}
}
