package api_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/limits"
	"sallyport/memory/sqlitestore"
)

func newLimitedRig(t *testing.T, o memory.Options) *rig {
	t.Helper()
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	return newRigWith(t, store, o)
}

func TestAFullNamespaceIsToldSo(t *testing.T) {
	r := newLimitedRig(t, memory.Options{Limits: limits.Limits{Records: 1}})
	const name, role = `{"subject":"user","predicate":"name","value":"Ann"}`, `{"subject":"user","predicate":"role","value":"cook"}`
	if a := r.send("POST", "/v1/remember", "ns", name); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if a := r.send("POST", "/v1/remember", "ns", role); a.status != http.StatusForbidden || a.code() != "limit_exceeded" {
		t.Errorf("REST: %d %s", a.status, a.body)
	}
	if text, isError := r.tool("ns", "remember", role); !isError || !strings.HasPrefix(text, "limit_exceeded: this namespace may hold 1 records") {
		t.Errorf("MCP: %v %s", isError, text)
	}
	if a := r.send("POST", "/v1/remember", "other", role); a.status != http.StatusOK {
		t.Errorf("another namespace: %d %s", a.status, a.body)
	}
}

func TestWhoAsksTooOftenWaits(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := newLimitedRig(t, memory.Options{Limits: limits.Limits{RequestsPerSecond: 0.25}, Now: func() time.Time { return now }})
	const question, ping = `{"subject":"user"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if a := r.send("POST", "/v1/recall", "ns", question); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	for path, body := range map[string]string{"/v1/recall": question, "/mcp": ping} {
		a := r.send("POST", path, "ns", body)
		if a.status != http.StatusTooManyRequests || a.code() != "rate_limited" || a.header.Get("Retry-After") != "4" {
			t.Errorf("%s: %d %s, Retry-After %q", path, a.status, a.body, a.header.Get("Retry-After"))
		}
	}
	if a := r.send("POST", "/mcp", "other", ping); a.status != http.StatusOK {
		t.Errorf("another namespace: %d %s", a.status, a.body)
	}
	if a := r.send("GET", "/healthz", "", ""); a.status != http.StatusOK {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	now = now.Add(4 * time.Second)
	if a := r.send("POST", "/mcp", "ns", ping); a.status != http.StatusOK {
		t.Errorf("after the wait: %d %s", a.status, a.body)
	}
}
