package memory_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
)

// concepts stands in for a model: a text means the things whose words it has.
type concepts struct {
	name string
	size int

	mu     sync.Mutex
	down   error
	hang   chan struct{} // it hangs until this is closed
	asked  int
	refuse string // a text that has it is not taken
}

var things = [][]string{
	{"vim", "emacs", "editor", "typing"},
	{"espresso", "tea", "coffee", "beverage"},
	{"rome", "berlin", "city", "town"},
}

type refusedError struct{}

func (refusedError) Error() string { return "not taken" }
func (refusedError) Refused() bool { return true }

func (c *concepts) Model() string { return c.name }

func (c *concepts) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.mu.Lock()
	down, hang, refuse := c.down, c.hang, c.refuse
	c.asked += len(texts)
	c.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if down != nil {
		return nil, down
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if refuse != "" && strings.Contains(text, refuse) {
			return nil, refusedError{}
		}
		v := make([]float32, c.size)
		v[len(things)] = 0.1 // whatever is said is a little alike
		for dim, words := range things {
			for _, w := range belief.Words(text) {
				if slices.Contains(words, w) {
					v[dim]++
				}
			}
		}
		var sum float64
		for _, n := range v {
			sum += float64(n * n)
		}
		for dim := range v {
			v[dim] /= float32(math.Sqrt(sum))
		}
		out[i] = v
	}
	return out, nil
}

func (c *concepts) set(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}

func newConcepts(name string) *concepts { return &concepts{name: name, size: len(things) + 1} }

// meaningful is a service with a model, on a store, whose worker runs until the test ends or stop is called.
func (r *rig) meaningful(store memory.Store, c *concepts) (stop func()) {
	r.Helper()
	r.Service = memory.NewService(store, memory.Options{
		Vocabulary: &r.vocab, Now: r.now, Meaning: &memory.Meaning{Embedder: c, Similarity: 0.8, Timeout: 5 * time.Second},
	})
	running, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	service := r.Service
	go func() {
		defer close(ended)
		service.Run(running)
	}()
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			r.Error("the worker does not end")
		}
	}
	r.Cleanup(stop)
	return stop
}

// embedded waits until every statement of the namespace has a vector of the model, but for some.
func (r *rig) embedded(store memory.Store, c *concepts, but int) {
	r.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		missing := 0
		err := store.Read(ctx, r.caller.Namespace, func(reader memory.Reader) error {
			seqs, err := reader.WithoutVector(c.name, c.size, 0)
			missing = len(seqs)
			return err
		})
		if err != nil {
			r.Fatal(err)
		}
		if missing == but {
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("%d statements have no vector, want %d", missing, but)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestWhatAQuestionMeansIsFound(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		r := newRig(t, belief.Open())
		findsByMeaning(r, r.store)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		store, err := pgstore.Open(ctx, pgtest.Start(t).Database(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		findsByMeaning(newRig(t, belief.Open()), store)
	})
}

func findsByMeaning(r *rig, store memory.Store) {
	model := newConcepts("a")
	stop := r.meaningful(store, model)
	r.remember("ann detail vim@1")
	r.remember("ann phone espresso@2")
	r.remember("ann phone tea@3")
	r.remember("ann lives_in rome@4")
	r.remember("bob lives_in berlin@5")
	r.remember("ann note coffee with bob@6")
	r.embedded(store, model, 0)
	for _, c := range []struct {
		rule string
		ask  memory.RecallArgs
		want string
	}{
		{"what shares no word but means the same", memory.RecallArgs{Query: "editor"}, "vim"},
		{"nothing that means something else", memory.RecallArgs{Query: "mountain"}, ""},
		{"the words still find what they found", memory.RecallArgs{Query: "vim"}, "vim"},
		{"what both find comes first, notes last", memory.RecallArgs{Query: "beverage bob"}, "berlin | tea | coffee with bob"},
		{"of one subject, and then the rest of it", memory.RecallArgs{Subject: "ann", Query: "town"}, "rome | tea | vim | coffee with bob"},
		{"filters hold", memory.RecallArgs{Query: "city", ObservedAfter: on(5)}, "berlin"},
		{"as it was believed", memory.RecallArgs{Query: "beverage", AsOf: on(2)}, "espresso"},
		{"not what has ended", memory.RecallArgs{Query: "beverage"}, "tea | coffee with bob"},
		{"the best ones", memory.RecallArgs{Query: "beverage", Limit: 1}, "tea"},
	} {
		want(r, c.rule, values(r.recall(c.ask)), c.want)
	}
	x, err := r.Explain(ctx, r.caller, memory.ExplainArgs{Question: "typing"})
	if err != nil || len(x) != 1 || x[0].Value.String() != "vim" {
		r.Errorf("explained: %v %v", x, err)
	}
	r.remember("user note I drink espresso@7")
	r.embedded(store, model, 0)
	told, err := r.Ask(ctx, r.caller, memory.AskArgs{Question: "beverage"})
	if err != nil || len(told.Memories) != 1 || told.Memories[0].Text != "I drink espresso" {
		r.Errorf("asked: %v %v", told, err)
	}

	other := r.caller
	r.caller = as("agents:other", "")
	want(r, "of another namespace", values(r.recall(memory.RecallArgs{Query: "editor"})), "")
	r.caller = other

	stop() // and another model
	second := newConcepts("b")
	second.size++
	r.meaningful(store, second)
	r.embedded(store, second, 0)
	want(r, "found by the new model", values(r.recall(memory.RecallArgs{Query: "editor"})), "vim")

	if err := store.Erase(ctx, r.caller.Namespace); err != nil {
		r.Fatal(err)
	}
	want(r, "after an erase", values(r.recall(memory.RecallArgs{Query: "editor"})), "")
}

func TestWithoutTheServiceWordsAreSearchedAndNothingIsLost(t *testing.T) {
	r := newRig(t, belief.Open())
	model := newConcepts("a")
	model.set(func() { model.down = errors.New("down") })
	r.meaningful(r.store, model)
	r.remember("ann detail vim")
	want(t, "by words", values(r.recall(memory.RecallArgs{Query: "vim"})), "vim")
	want(t, "by meaning", values(r.recall(memory.RecallArgs{Query: "editor"})), "")
	model.set(func() { model.down = nil })
	r.pass(time.Minute)
	r.embedded(r.store, model, 0)
	want(t, "when it answers again", values(r.recall(memory.RecallArgs{Query: "editor"})), "vim")
}

func TestAQuestionWaitsOnceForAServiceThatHangs(t *testing.T) {
	r := newRig(t, belief.Open())
	model := newConcepts("a")
	model.set(func() { model.hang = make(chan struct{}) })
	r.Service = memory.NewService(r.store, memory.Options{
		Vocabulary: &r.vocab, Now: r.now, Meaning: &memory.Meaning{Embedder: model, Similarity: 0.8, Timeout: 10 * time.Millisecond},
	})
	r.remember("ann detail vim")
	for range 3 {
		want(t, "by words", values(r.recall(memory.RecallArgs{Query: "vim"})), "vim")
	}
	counted(t, r, "sallyport_memory_embeddings_total", `{of="question",result="failed"} 1`, `{of="question",result="skipped"} 2`)
	model.set(func() { close(model.hang) })
	r.pass(time.Minute)
	r.recall(memory.RecallArgs{Query: "vim"})
	counted(t, r, "sallyport_memory_embeddings_total", `{of="question",result="failed"} 1`, `{of="question",result="ok"} 1`, `{of="question",result="skipped"} 2`)
}

func TestATextThatIsNotTakenKeepsNoOtherFromBeingEmbedded(t *testing.T) {
	r := newRig(t, belief.Open())
	model := newConcepts("a")
	model.set(func() { model.refuse = "poison" })
	r.remember("ann detail vim")
	r.remember("ann detail poison")
	r.remember("ann detail tea")
	r.meaningful(r.store, model)
	r.embedded(r.store, model, 1)
	want(t, "the others", values(r.recall(memory.RecallArgs{Query: "editor"})), "vim")
	want(t, "it, by its words", values(r.recall(memory.RecallArgs{Query: "poison"})), "poison")
}

func TestAnErasedNamespaceDoesNotComeBackWithItsVectors(t *testing.T) {
	r := newRig(t, belief.Open())
	model := newConcepts("a")
	model.set(func() { model.hang = make(chan struct{}) })
	r.meaningful(r.store, model)
	r.remember("ann detail vim")
	deadline := time.Now().Add(10 * time.Second)
	for asked := 0; asked == 0; time.Sleep(time.Millisecond) { // until the worker has read the statement
		model.set(func() { asked = model.asked })
		if time.Now().After(deadline) {
			t.Fatal("nobody embeds the statement")
		}
	}
	if err := r.store.Erase(ctx, r.caller.Namespace); err != nil {
		t.Fatal(err)
	}
	model.set(func() { close(model.hang) })
	r.caller = as("agents:other", "")
	r.remember("ann detail tea")
	r.embedded(r.store, model, 0)
	names, err := r.store.Namespaces(ctx, "", 9)
	if err != nil || !slices.Equal(names, []string{"agents:other"}) {
		t.Errorf("namespaces %v %v", names, err)
	}
}
