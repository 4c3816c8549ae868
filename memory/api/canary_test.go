package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/api"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

// alike is a model to which all texts mean the same: whatever a search by meaning can reach it finds.
type alike struct{}

func (alike) Model() string { return "alike" }

func (alike) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

// step is one operation. NAME stands for what both tenants know and may call things by, VALUE for what only one has said.
type step struct{ tool, arguments string }

var agentSteps = []step{
	{"agent_resume", `{"agent_id":"NAME"}`},
	{"agent_acquire", `{"agent_id":"NAME"}`},
	{"update_working_state", `{"agent_id":"NAME","goal":"VALUE"}`},
	{"agent_milestone", `{"agent_id":"NAME","name":"VALUE"}`},
	{"record_turn", `{"agent_id":"NAME","role":"user","content":"VALUE","message_id":"NAME"}`},
	{"store_output", `{"agent_id":"NAME","content":"VALUE","ref":"NAME"}`},
	{"set_pointer", `{"agent_id":"NAME","name":"NAME","type":"object","fields":{"uri":"VALUE"}}`},
	{"begin_action", `{"agent_id":"NAME","tool":"VALUE","class":"external","args":"VALUE"}`},
	{"end_action", `{"agent_id":"NAME","seq":1,"status":"unknown"}`},
	{"agent_context", `{"agent_id":"NAME"}`},
	{"working_state_history", `{"agent_id":"NAME"}`},
	{"recent_turns", `{"agent_id":"NAME"}`},
	{"fetch_output", `{"agent_id":"NAME","ref":"NAME"}`},
	{"list_pointers", `{"agent_id":"NAME"}`},
	{"pending_actions", `{"agent_id":"NAME"}`},
	{"remove_pointer", `{"agent_id":"NAME","name":"NAME"}`},
	{"agent_release", `{"agent_id":"NAME"}`},
}

var typedSteps = []step{
	{"remember", `{"subject":"NAME","predicate":"name","value":"VALUE"}`},
	{"remember", `{"subject":"NAME","predicate":"role","value":"VALUE role","replaces":[{"predicate":"name","value":"NAME"}]}`},
	{"remember", `{"text":"about VALUE","statements":[{"subject":"NAME","predicate":"uses_technology","value":"VALUE","evidence":"VALUE"}]}`},
	{"remember", `{"subject":"NAME","predicate":"said_by_name","value":"VALUE","description":"VALUE"}`}, // refused where predicates are fixed
	{"list_predicates", `{}`},
	{"recall", `{"subject":"NAME","with_sources":true}`},
	{"recall", `{"predicate":"name","as_of":"2030-01-01T00:00:00Z"}`},
	{"recall", `{"query":"NAME about role name","with_sources":true}`},
	{"explain", `{"question":"NAME about role name"}`},
	{"memory_history", `{"subject":"NAME","predicate":"name"}`},
	{"timeline", `{"subject":"NAME","predicate":"name"}`},
	{"diff", `{"from":"2000-01-01T00:00:00Z"}`},
	{"forget", `{"subject":"NAME","predicate":"name"}`},
}

var textSteps = []step{
	{"remember", `{"text":"about NAME: VALUE"}`},
	{"remember", `{"messages":[{"role":"user","content":"VALUE"}]}`},
	{"recall", `{"question":"about NAME"}`},
	{"recall", `{}`},
	{"recall", `{"since":"2000-01-01T00:00:00Z"}`},
	{"history", `{"question":"NAME"}`},
	{"diff", `{"from":"2000-01-01T00:00:00Z"}`},
	{"forget", `{"text":"about NAME"}`},
}

// TestNoTenantFindsAnythingOfAnother has two tenants do every operation under the same names, and then by every id that the
// other was ever told; nothing that only the other said, and no id that it was given, may come back.
func TestNoTenantFindsAnythingOfAnother(t *testing.T) {
	postgres := pgtest.Start(t)
	for name, open := range map[string]func(*testing.T) (memory.Store, error){
		"SQLite": func(t *testing.T) (memory.Store, error) {
			t.Helper()
			return sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "memory.db"))
		},
		"PostgreSQL": func(t *testing.T) (memory.Store, error) {
			t.Helper()
			return pgstore.Open(t.Context(), postgres.Database(t))
		},
	} {
		for surface, c := range map[string]struct {
			surface api.Surface
			words   belief.Vocabulary
			steps   []step
		}{
			"typed": {api.Typed(false), belief.Closed(), typedSteps},
			"open":  {api.Typed(true), belief.Open(), typedSteps},
			"text":  {api.Text(), belief.Open(), textSteps},
		} {
			t.Run(name+"/"+surface, func(t *testing.T) {
				store, err := open(t)
				if err != nil {
					t.Fatal(err)
				}
				w := newTenants(t, store, c.surface, c.words)
				steps := slices.Concat(c.steps, agentSteps)
				w.each("one", "canary-one-7f3a", steps)
				w.each("two", "canary-two-9b2c", steps)
				w.each("one", "canary-one-7f3a", steps) // what the second tenant did shows nowhere
				w.byIDs("one", steps)
				w.byIDs("two", steps)
				w.exports()
			})
		}
	}
}

// tenants are two of them on one server.
type tenants struct {
	*rig
	store memory.Store
	said  map[string]string          // by tenant, what only it says
	ids   map[string]map[string]bool // by tenant, the ids that it was told
	used  map[string]bool            // tenant and id, those of the other that it has named things by
}

func newTenants(t *testing.T, store memory.Store, surface api.Surface, words belief.Vocabulary) *tenants {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	service := memory.NewService(store, memory.Options{
		Vocabulary: &words, Logger: log, Meaning: &memory.Meaning{Embedder: alike{}, Similarity: 0.5, Timeout: 5 * time.Second},
	})
	server := httptest.NewServer(front(api.NewHandler(service, surface, gateway.DefaultHeaders(), log)))
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		service.Run(running)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &tenants{
		rig: &rig{T: t, url: server.URL, log: &bytes.Buffer{}}, store: store,
		said: map[string]string{}, used: map[string]bool{}, ids: map[string]map[string]bool{"one": {}, "two": {}},
	}
}

var anID = regexp.MustCompile(`m-[0-9a-f]{24}|out-[0-9]+-[0-9]+|act-[0-9]+-[a-z]+|"key":"[0-9a-f]{32}"|[0-9a-f]{32}`)

// each does every step as a tenant, and notes the ids that it is told.
func (w *tenants) each(tenant, value string, steps []step) {
	w.Helper()
	w.said[tenant] = value
	for _, s := range steps {
		text := w.do(tenant, s, "shared", value)
		for _, id := range anID.FindAllString(text, -1) {
			w.ids[tenant][strings.Trim(strings.TrimPrefix(id, `"key":`), `"`)] = true
		}
	}
	w.embedded(tenant)
}

// byIDs does every step as a tenant under each id that the other was told, as if it were the name of everything.
func (w *tenants) byIDs(tenant string, steps []step) {
	w.Helper()
	other := map[string]string{"one": "two", "two": "one"}[tenant]
	if len(w.ids[other]) == 0 {
		w.Error("no id was told")
	}
	const some = 4 // they are of a few kinds
	asked := 0
	for id := range w.ids[other] {
		if w.ids[tenant][id] { // such as act-1-args, which each has
			continue
		}
		if asked++; asked > some {
			return
		}
		w.used[tenant+id] = true // from here on it may see that it has named something so
		for _, s := range steps {
			w.do(tenant, s, id, w.said[tenant])
		}
	}
}

func (w *tenants) do(tenant string, s step, name, value string) string {
	w.Helper()
	text, _ := w.tool(tenant+"/pod", s.tool, strings.NewReplacer("NAME", name, "VALUE", value).Replace(s.arguments))
	w.quiet(tenant, s.tool, strings.ReplaceAll(text, name, ""))
	return text
}

// quiet fails if a text that a tenant got holds what only the other said or was told.
func (w *tenants) quiet(tenant, what, text string) {
	w.Helper()
	for other, value := range w.said {
		if other == tenant {
			continue
		}
		if strings.Contains(text, value) {
			w.Errorf("%s gets of %s by %s: %s", tenant, other, what, text)
		}
		for id := range w.ids[other] {
			if strings.Contains(text, id) && !w.ids[tenant][id] && !w.used[tenant+id] {
				w.Errorf("%s gets an id of %s by %s: %s", tenant, other, what, text)
			}
		}
	}
}

// embedded waits until all statements of a tenant can be found by their meaning.
func (w *tenants) embedded(tenant string) {
	w.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for missing := 1; missing > 0; time.Sleep(2 * time.Millisecond) {
		err := w.store.Read(context.Background(), tenant, func(r memory.Reader) error {
			seqs, err := r.WithoutVector(alike{}.Model(), 0, 0)
			missing = len(seqs)
			return err
		})
		if err != nil {
			w.Fatal(err)
		}
		if time.Now().After(deadline) {
			w.Fatalf("%d statements have no vector", missing)
		}
	}
}

// exports looks through all that each tenant holds, and makes sure that there was something to find.
func (w *tenants) exports() {
	w.Helper()
	for tenant, value := range w.said {
		var b bytes.Buffer
		if err := memory.Export(context.Background(), w.store, tenant, &b); err != nil {
			w.Fatal(err)
		}
		if !strings.Contains(b.String(), value) {
			w.Errorf("%s has lost what it said", tenant)
		}
		for line := range strings.Lines(b.String()) {
			if !json.Valid([]byte(line)) {
				w.Errorf("no JSON: %s", line)
			}
		}
		for other, theirs := range w.said {
			if other != tenant && strings.Contains(b.String(), theirs) {
				w.Errorf("the export of %s holds what %s said", tenant, other)
			}
		}
	}
}
