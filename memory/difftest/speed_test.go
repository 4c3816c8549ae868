package difftest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

var speed = flag.Bool("speed", false, "measure beside the reference instead of comparing answers; takes some minutes")

// The sizes that are measured. The reference cannot be filled to the larger in reasonable time.
const (
	small = 1_000
	large = 100_000
)

func TestSpeed(t *testing.T) {
	if !*speed {
		t.Log("give -speed to measure")
		return
	}
	reference := &peer{}
	reference.start(t, "-typed", "-open")
	systems := []*system{{name: "recall", url: reference.url, header: http.Header{"Authorization": {"Bearer " + key(1)}}, size: small, client: http.DefaultClient}}
	lite, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := pgstore.Open(context.Background(), pgtest.Start(t, "fsync=on").Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name  string
		store memory.Store
	}{{"SQLite", lite}, {"PostgreSQL", postgres}} {
		t.Cleanup(func() { _ = x.store.Close() })
		server := httptest.NewServer(newOwn(x.store).handler)
		t.Cleanup(server.Close)
		for _, size := range []int{small, large} {
			header := http.Header{}
			for _, h := range gateway.DefaultHeaders().Values(gateway.Identity{Namespace: fmt.Sprintf("size:%d", size)}) {
				header.Set(h.Name, h.Value)
			}
			s := &system{name: x.name, url: server.URL, header: header, size: size, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: manyClients}}}
			systems = append(systems, s)
			if size == large {
				fillStore(t, x.store, header.Get("x-sallyport-namespace"), size)
			}
		}
	}
	for _, s := range systems {
		fillSystem(t, s)
	}
	for _, o := range operations {
		for _, clients := range []int{1, manyClients} {
			measure(t, systems, o, clients)
		}
	}
}

// statement is the nth belief: ten values of each pair, and words that are shared by some.
func statement(n int) (subject, predicate, value string) {
	return fmt.Sprintf("subject%d", n/10), "uses_technology", fmt.Sprintf("tool number%d of group%d", n, n%97)
}

func rememberBody(n int) object {
	subject, predicate, value := statement(n)
	return object{"subject": subject, "predicate": predicate, "value": value}
}

var operations = []operation{
	{"remember", func(s *system, _, n int) (time.Duration, error) {
		return s.post("/v1/remember", object{"subject": fmt.Sprintf("new%d", n/10), "predicate": "uses_technology", "value": fmt.Sprintf("new thing%d", n)})
	}},
	{"recall exact", func(s *system, _, n int) (time.Duration, error) {
		subject, predicate, _ := statement(n * 7919 % small)
		return s.post("/v1/recall", object{"subject": subject, "predicate": predicate})
	}},
	{"recall by words", func(s *system, _, n int) (time.Duration, error) {
		return s.post("/v1/recall", object{"query": fmt.Sprintf("which tool has number%d", n*7919%small), "limit": 5})
	}},
	{"agent_resume, 200 turns", func(s *system, client, _ int) (time.Duration, error) {
		id := object{"agent_id": fmt.Sprintf("agent%d", client)}
		took, err := s.tool("agent_resume", id)
		if err == nil {
			_, err = s.tool("agent_release", id)
		}
		return took, err
	}},
}

// fillStore writes many beliefs at once, past HTTP.
func fillStore(t *testing.T, store memory.Store, namespace string, size int) {
	t.Helper()
	var lines strings.Builder
	for n := range size {
		subject, predicate, value := statement(n)
		fmt.Fprintf(&lines, `{"event":{"id":"m-%024d","kind":"fact","subject":%q,"predicate":%q,"value":%q,"confidence":1,"source":"user_stated","observed_at":%q}}`+"\n",
			n, subject, predicate, value, time.Date(2024, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339))
	}
	if _, err := memory.Import(context.Background(), store, namespace, strings.NewReader(lines.String())); err != nil {
		t.Fatal(err)
	}
}

// fillSystem writes what is not there yet: the beliefs of a small one, and an agent with 200 turns for each client.
func fillSystem(t *testing.T, s *system) {
	t.Helper()
	if s.size == small {
		for n := range small {
			if _, err := s.post("/v1/remember", rememberBody(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for client := range manyClients {
		id := fmt.Sprintf("agent%d", client)
		must := func(name string, arguments object) {
			t.Helper()
			arguments["agent_id"] = id
			if _, err := s.tool(name, arguments); err != nil {
				t.Fatal(err)
			}
		}
		must("agent_resume", object{})
		for turn := range 200 {
			must("record_turn", object{"role": "user", "content": fmt.Sprintf("what was said in turn %d of this agent", turn)})
		}
		must("agent_release", object{})
	}
}
