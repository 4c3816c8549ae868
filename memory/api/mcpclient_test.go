package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// witness adds the key to every request, and notes what was sent and answered.
type witness struct {
	key string

	mu   sync.Mutex
	seen []string // "POST 200"
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.key)
	a, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, r.Method+" "+a.Status[:3])
	}
	return a, err
}

// connect opens a session as a host does that is built with MCP's official Go SDK.
func (r *rig) connect(key string) (*mcp.ClientSession, *witness) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r.Cleanup(cancel)
	w := &witness{key: key}
	client := mcp.NewClient(&mcp.Implementation{Name: "a host", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: &http.Client{Transport: w}}, nil)
	if err != nil {
		r.Fatal(err)
	}
	return session, w
}

// say calls a tool and returns the text of its answer.
func say(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (text string, isError bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if len(a.Content) != 1 {
		t.Fatalf("%s: %d contents", tool, len(a.Content))
	}
	content, ok := a.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("%s: a %T", tool, a.Content[0])
	}
	return content.Text, a.IsError
}

func TestTheOfficialSDKsClient(t *testing.T) {
	r := newRig(t)
	session, sent := r.connect("one")
	hello := session.InitializeResult()
	if hello.ServerInfo.Name != "sallyport-memory" || hello.ProtocolVersion != "2025-06-18" || hello.Instructions == "" || hello.Capabilities.Tools == nil {
		t.Errorf("initialized with %+v", hello)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := session.Ping(ctx, nil); err != nil {
		t.Errorf("ping: %v", err)
	}
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	const typed, agents = 8, 17
	if len(listed.Tools) != typed+agents || listed.NextCursor != "" {
		t.Errorf("%d tools", len(listed.Tools))
	}
	for _, tool := range listed.Tools {
		if tool.Description == "" || tool.InputSchema == nil {
			t.Errorf("%s has no description or no schema", tool.Name)
		}
		if tool.Name == "recall" && (tool.Annotations == nil || !tool.Annotations.ReadOnlyHint) {
			t.Error("recall is not said to be read-only")
		}
	}

	if text, isError := say(t, session, "remember", map[string]any{"subject": "user", "predicate": "name", "value": "Ann"}); isError {
		t.Errorf("remember: %s", text)
	}
	text, isError := say(t, session, "recall", map[string]any{"subject": "user"})
	var beliefs []struct{ Value string }
	if err := json.Unmarshal([]byte(text), &beliefs); err != nil || isError || len(beliefs) != 1 || beliefs[0].Value != "Ann" {
		t.Errorf("recall: %s", text)
	}
	if text, isError := say(t, session, "recall", nil); !isError {
		t.Errorf("a recall of nothing: %s", text)
	}
	if text, isError := say(t, session, "nonesuch", nil); !isError || !strings.Contains(text, `unknown tool "nonesuch"`) {
		t.Errorf("a tool that there is not: %s", text)
	}
	if _, err := session.ListResources(ctx, nil); err == nil {
		t.Error("resources were listed")
	}

	if text, isError := say(t, session, "agent_resume", map[string]any{"agent_id": "worker"}); isError {
		t.Errorf("resume: %s", text)
	}
	other, _ := r.connect("two")
	if text, _ := say(t, other, "recall", map[string]any{"subject": "user"}); text != "[]" {
		t.Errorf("another namespace sees %s", text)
	}
	for _, s := range []*mcp.ClientSession{session, other} {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	if !slices.Contains(sent.seen, "POST 202") {
		t.Errorf("no notification was taken: %v", sent.seen)
	}
	for _, s := range sent.seen {
		if s != "POST 200" && s != "POST 202" && s != "GET 405" && s != "DELETE 200" {
			t.Errorf("it met %s", s)
		}
	}
}

func TestStreamableHTTPAsItIsServed(t *testing.T) {
	r := newRig(t)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		rule, method, body string
		headers            []string
		status             int
		holds              string
	}{
		{"a call needs no session and no initialize", "POST", ping, nil, 200, `"result":{}`},
		{"an answer is plain JSON, whatever is accepted", "POST", ping, []string{"Accept", "text/event-stream"}, 200, `"result":{}`},
		{"a version that is spoken", "POST", ping, []string{"Mcp-Protocol-Version", "2025-06-18"}, 200, `"result":{}`},
		{"a version that is not is no reason to refuse", "POST", ping, []string{"Mcp-Protocol-Version", "2099-01-01"}, 200, `"result":{}`},
		{"a session may be named", "POST", ping, []string{"Mcp-Session-Id", "mine"}, 200, `"result":{}`},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"a batch", "POST", "[" + ping + "]", nil, 400, `-32700`},
		{"there is no stream to listen to", "GET", "", []string{"Accept", "text/event-stream"}, 405, `method_not_allowed`},
		{"a session ends without more ado", "DELETE", "", []string{"Mcp-Session-Id", "mine"}, 200, ""},
	} {
		a := r.send(c.method, "/mcp", "one", c.body, c.headers...)
		if a.status != c.status || !strings.Contains(string(a.body), c.holds) || (c.holds == "" && len(a.body) > 0) {
			t.Errorf("%s: %d %s", c.rule, a.status, a.body)
		}
	}
	for asked, spoken := range map[string]string{"2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05", "2099-01-01": "2025-06-18"} {
		a := r.send("POST", "/mcp", "one", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+asked+`"}}`)
		if !strings.Contains(string(a.body), `"protocolVersion":"`+spoken+`"`) || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("asked for %s: %s", asked, a.body)
		}
	}
}
