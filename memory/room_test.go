package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/agent"
	"sallyport/memory/belief"
	"sallyport/memory/limits"
	"sallyport/memory/pgstore"
	"sallyport/memory/refusal"
)

// limited returns a rig whose namespaces have limits.
func limited(t *testing.T, l limits.Limits) *rig {
	t.Helper()
	r := newRig(t, belief.Open())
	r.limit(l)
	return r
}

// limit starts the service anew, on the same file, with other limits.
func (r *rig) limit(l limits.Limits) {
	r.Service = memory.NewService(r.store, memory.Options{Vocabulary: &r.vocab, Now: r.now, Limits: l})
}

// full checks that an error says which limit was met.
func full(t *testing.T, what string, err error, saying ...string) {
	t.Helper()
	r := refusal.As(err)
	if r == nil || r.Kind != refusal.Full {
		t.Errorf("%s: got %v, want a refusal of more", what, err)
		return
	}
	for _, s := range append(saying, "limit_exceeded: ") {
		if !strings.Contains(r.Text, s) {
			t.Errorf("%s: %q does not say %q", what, r.Text, s)
		}
	}
}

// counted checks the samples of one metric.
func counted(t *testing.T, r *rig, name string, samples ...string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			got = append(got, fmt.Sprintf("{%s} %v", strings.Join(labels, ","), m.GetCounter().GetValue()))
		}
	}
	if !slices.Equal(got, samples) {
		t.Errorf("%s: %v, want %v", name, got, samples)
	}
}

func (r *rig) try(statement string) error {
	_, err := r.Remember(ctx, r.caller, r.args(statement))
	return err
}

func TestANamespaceHoldsNoMoreThanItMay(t *testing.T) {
	r := limited(t, limits.Limits{Records: 2})
	r.remember("user name Ann")
	r.remember("user role cook")
	full(t, "a third record", r.try("user lives_in Rome"), "may hold 2 records", "it holds 2", "add 1", "max-records")
	counted(t, r, "sallyport_memory_limit_refusals_total", `{limit="records"} 1`)
	want(t, "of what was refused there is", len(r.recall(memory.RecallArgs{Subject: "user"})), 2)
	if err := r.try("user name Ann"); err != nil {
		t.Errorf("what is known already adds nothing: %v", err)
	}
	other := as("agents:other", "")
	if _, err := r.Remember(ctx, other, r.args("user name Bob")); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	r.crash()
	r.limit(limits.Limits{Records: 2})
	full(t, "after a restart", r.try("user lives_in Rome"))
	r.limit(limits.Limits{Records: 3})
	r.remember("user lives_in Rome")
}

func TestAWriteIsRefusedWhole(t *testing.T) {
	r := limited(t, limits.Limits{Records: 2})
	text, statements := "I like tea and Rome.", []memory.Proposal{
		{Subject: "user", Predicate: "drink", Value: []byte(`"tea"`), Evidence: "tea"},
		{Subject: "user", Predicate: "city", Value: []byte(`"Rome"`), Evidence: "Rome"},
	}
	_, err := r.Remember(ctx, r.caller, memory.RememberArgs{Text: &text, Statements: &statements})
	full(t, "a text with two statements under new predicates", err, "it holds 0", "add 5")
	want(t, "beliefs", len(r.recall(memory.RecallArgs{Subject: "user"})), 0)
	defined, err := r.Predicates(ctx, r.caller)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range defined {
		if p.Name == "drink" || p.Name == "city" {
			t.Errorf("%s was defined", p.Name)
		}
	}
}

func TestBytesAreLimited(t *testing.T) {
	r := limited(t, limits.Limits{Bytes: 100})
	r.remember("user name " + strings.Repeat("x", 80)) // and a few for the other texts
	full(t, "more", r.try("user role "+strings.Repeat("y", 20)), "may hold 100 bytes", "max-bytes")
	want(t, "of what was refused there is", len(r.recall(memory.RecallArgs{Subject: "user", Predicate: "role"})), 0)
}

func TestAFullNamespaceCanBeForgottenReadAndWorkedToAnEnd(t *testing.T) {
	r := limited(t, limits.Limits{})
	r.remember("user name Ann")
	work := memory.AgentArgs{AgentID: "run-1"}
	resume := memory.ResumeArgs{AgentArgs: work}
	if _, err := r.Resume(ctx, r.caller, resume); err != nil {
		t.Fatal(err)
	}
	action, err := r.BeginAction(ctx, r.caller, memory.BeginArgs{AgentArgs: work, Tool: "send", Class: agent.External})
	if err != nil {
		t.Fatal(err)
	}
	r.limit(limits.Limits{Records: 1, Bytes: 1})
	_, err = r.RecordTurn(ctx, r.caller, memory.TurnArgs{AgentArgs: work, Role: "user", Content: "x"})
	full(t, "a turn", err)
	_, err = r.EndAction(ctx, r.caller, memory.EndArgs{AgentArgs: work, Seq: &action.Seq, Status: agent.Done, Result: "a long one"})
	full(t, "a result", err)
	_, err = r.Resume(ctx, r.caller, memory.ResumeArgs{AgentArgs: memory.AgentArgs{AgentID: "run-2"}})
	full(t, "a new agent", err)
	_, err = r.Resume(ctx, r.caller, memory.ResumeArgs{AgentArgs: memory.AgentArgs{AgentID: "run-3"}, DeferLease: true})
	full(t, "a new agent without a lease", err)

	if _, err := r.EndAction(ctx, r.caller, memory.EndArgs{AgentArgs: work, Seq: &action.Seq, Status: agent.Done}); err != nil {
		t.Errorf("end an action: %v", err)
	}
	if _, err := r.Release(ctx, r.caller, work); err != nil {
		t.Errorf("release: %v", err)
	}
	if _, err := r.Resume(ctx, as(r.caller.Namespace, "pod-2"), resume); err != nil {
		t.Errorf("resume what is there: %v", err)
	}
	want(t, "forgotten", r.forget("user", "name", ""), 1)
	want(t, "forgotten again, which writes nothing", r.forget("user", "name", ""), 0)
}

func TestClientsAtOnceDoNotPassTheLimitTogether(t *testing.T) {
	race := func(t *testing.T, store memory.Store) {
		t.Helper()
		const most, clients, each = 40, 16, 8
		vocab := belief.Open()
		service := memory.NewService(store, memory.Options{Vocabulary: &vocab, Limits: limits.Limits{Records: most}})
		caller := as("agents:run-1", "")
		var kept, refused atomic.Int64
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				for i := range each {
					subject, predicate := fmt.Sprintf("s-%d-%d", client, i), "name"
					_, err := service.Remember(ctx, caller, memory.RememberArgs{Subject: &subject, Predicate: &predicate, Value: []byte(`"x"`)})
					switch r := refusal.As(err); {
					case err == nil:
						kept.Add(1)
					case r != nil && r.Kind == refusal.Full:
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		want(t, "kept", kept.Load(), most)
		want(t, "refused", refused.Load(), clients*each-most)
		err := store.Read(ctx, caller.Namespace, func(r memory.Reader) error {
			events, err := r.Events(memory.EventFilter{})
			want(t, "events", len(events), most)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	t.Run("SQLite", func(t *testing.T) { race(t, newRig(t, belief.Open()).store) })
	t.Run("PostgreSQL", func(t *testing.T) {
		store, err := pgstore.Open(ctx, pgtest.Start(t).Database(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		race(t, store)
	})
}

func TestRequestsASecondAreLimited(t *testing.T) {
	r := limited(t, limits.Limits{RequestsPerSecond: 2})
	for range 2 {
		if err := r.Admit("a"); err != nil {
			t.Fatal(err)
		}
	}
	err := r.Admit("a")
	said := refusal.As(err)
	if said == nil || said.Kind != refusal.TooOften || said.After <= 0 || said.After > time.Second || !strings.Contains(said.Text, "2 requests a second") {
		t.Errorf("got %v", err)
	}
	if err := r.Admit("b"); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	r.pass(said.After)
	if err := r.Admit("a"); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	counted(t, r, "sallyport_memory_limit_refusals_total", `{limit="requests"} 1`)
	if err := limited(t, limits.Limits{}).Admit("a"); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
