package memory_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/belief"
)

func TestWhatIsKeptIsWhatTheEventsAmountTo(t *testing.T) {
	const runs, steps = 4, 40
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t, belief.Open())
			rnd := rand.New(rand.NewPCG(seed, 1))
			pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
			for range steps {
				predicate, value := pick("name", "did", "likes", "dislikes", "owns", "gave_away", "note"), pick("a", "B", "b", "c")
				if rnd.IntN(4) == 0 {
					raw, _ := json.Marshal(value)
					r.forget("s", predicate, pick("", string(raw)))
					continue
				}
				at := ""
				if rnd.IntN(2) == 0 {
					at = fmt.Sprint("@", rnd.IntN(5))
				}
				var refs []belief.Ref
				if rnd.IntN(3) == 0 {
					refs = append(refs, belief.Ref{Predicate: pick("name", "did", "likes"), Value: json.RawMessage(`"` + pick("a", "b", "c") + `"`)})
				}
				r.remember("s "+predicate+" "+value+at, refs...)
			}
			err := r.store.Read(ctx, r.caller.Namespace, func(rd memory.Reader) error {
				events, err := rd.Events(memory.EventFilter{Subject: "s"})
				if err != nil {
					return err
				}
				kept, err := rd.Beliefs(memory.Filter{Subject: "s"})
				if err != nil {
					return err
				}
				fold := belief.Fold(func(name string) belief.Predicate { p, _ := r.vocab.Starter(name); return p }, events)
				got, wanted := map[string]string{}, map[string]string{}
				for _, b := range kept {
					got[b.EventID] = fmt.Sprintf("%+v", b)
				}
				for _, b := range fold.All() {
					wanted[b.EventID] = fmt.Sprintf("%+v", b)
				}
				want(t, "kept beliefs", fmt.Sprint(got), fmt.Sprint(wanted))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestEightWhoStateTheSameLeaveOneEvent(t *testing.T) {
	r := newRig(t, belief.Closed())
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 8 {
		wg.Go(func() {
			got := r.remember("user uses_technology Go")
			mu.Lock()
			defer mu.Unlock()
			if !got.AlreadyKnown {
				fresh++
			}
		})
	}
	wg.Wait()
	events, err := r.History(ctx, r.caller, memory.PairArgs{Subject: "user", Predicate: "uses_technology"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "events", len(events), 1)
	want(t, "fresh statements", fresh, 1)
}

func TestStatementsDatedAhead(t *testing.T) {
	r := newRig(t, belief.Closed())
	r.remember("user name Ann")
	ahead := func(value string, by time.Duration) (memory.RememberResult, error) {
		a := r.args("user name " + value)
		a.ObservedAt = r.now().Add(by).Format(time.RFC3339Nano)
		out, err := r.Remember(ctx, r.caller, a)
		result, _ := out.(memory.RememberResult)
		return result, err
	}
	_, err := ahead("Eve", 61*time.Second)
	refused(t, err, "ahead")
	if _, err := ahead("Bob", 59*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, a := range []memory.RecallArgs{{Subject: "user", Predicate: "name"}, {Subject: "user"}, {Predicate: "name"}, {Query: "name"}, {Subject: "user", Query: "bob"}} {
		want(t, fmt.Sprintf("before its time, asked %+v", a), values(r.recall(a)), "Ann")
	}
	want(t, "what is stated now counts until then", r.remember("user name Cid").Superseded[0].Value.String(), "Ann")
	want(t, "now", values(r.recall(memory.RecallArgs{Subject: "user", Predicate: "name"})), "Cid")
	r.pass(time.Minute)
	for _, a := range []memory.RecallArgs{{Subject: "user", Predicate: "name"}, {Subject: "user"}, {Query: "name"}} {
		want(t, fmt.Sprintf("in its time, asked %+v", a), values(r.recall(a)), "Bob")
	}
	t.Run("forgetting counts them, and ends them before they began", func(t *testing.T) {
		if _, err := ahead("Dan", 30*time.Second); err != nil {
			t.Fatal(err)
		}
		want(t, "forgotten", r.forget("user", "name", `"dan"`), 1)
		r.pass(time.Minute)
		want(t, "afterwards", values(r.recall(memory.RecallArgs{Subject: "user", Predicate: "name"})), "")
	})
}

func TestTies(t *testing.T) {
	r := newRig(t, belief.Closed())
	at := func(b belief.Belief) time.Duration { return b.ObservedAt.Sub(day(3)) }
	want(t, "the first", at(r.remember("user name A@3").Stored), 0)
	want(t, "the second of one pair moves on by a nanosecond", at(r.remember("user name B@3").Stored), time.Nanosecond)
	want(t, "the third by two", at(r.remember("user name C@3").Stored), 2*time.Nanosecond)
	want(t, "which is known when it is stated again", r.remember("user name C@3").AlreadyKnown, true)
	want(t, "at the boundary", values(r.recall(memory.RecallArgs{Subject: "user", Predicate: "name", AsOf: on(3)})), "A")
	want(t, "now", values(r.recall(memory.RecallArgs{Subject: "user", Predicate: "name"})), "C")
	t.Run("values that do not touch each other are not moved", func(t *testing.T) {
		for _, v := range []string{"Go", "Rust"} {
			want(t, v, at(r.remember("user uses_technology "+v+"@3").Stored), 0)
		}
		want(t, "at the boundary", values(r.recall(memory.RecallArgs{Subject: "user", Predicate: "uses_technology", AsOf: on(3)})), "Go | Rust")
	})
}

func TestRecallSelects(t *testing.T) {
	r := newRig(t, belief.Closed())
	for _, s := range []string{
		"ann role senior pilot@1", "ann note a text about kafka@2", "ann uses_technology kafka queues@3", "ann uses_technology postgres@99",
		"bob role pilot of boats@4", "bob timezone Europe/Lisbon@5",
	} {
		r.remember(s)
	}
	for _, c := range []struct {
		rule string
		args memory.RecallArgs
		want string
	}{
		{"a query alone finds what shares a word", memory.RecallArgs{Query: "which pilots are there?"}, "pilot of boats | senior pilot"},
		{"and nothing else", memory.RecallArgs{Query: "zebra crossing"}, ""},
		{"small words find nothing", memory.RecallArgs{Query: "what is the about of a zebra"}, ""},
		{"a question without words finds nothing", memory.RecallArgs{Query: "?!"}, ""},
		{"notes come last", memory.RecallArgs{Query: "kafka"}, "kafka queues | a text about kafka"},
		{"beside a subject a query puts in order", memory.RecallArgs{Subject: " ANN ", Query: "kafka"}, "kafka queues | postgres | senior pilot | a text about kafka"},
		{"a time in the query goes first", memory.RecallArgs{Query: "yesterday and kafka"}, "postgres | kafka queues | a text about kafka"},
		{"the limit cuts after the notes went last", memory.RecallArgs{Subject: "ann", Limit: 3}, "senior pilot | kafka queues | postgres"},
		{"a predicate alone", memory.RecallArgs{Predicate: "role"}, "senior pilot | pilot of boats"},
		{"what was stated in a time", memory.RecallArgs{Subject: "ann", ObservedAfter: on(2), ObservedBefore: on(3)}, "kafka queues | a text about kafka"},
		{"as it was believed then", memory.RecallArgs{Query: "pilot kafka", AsOf: on(3)}, "senior pilot | kafka queues | a text about kafka"},
		{"and before anything", memory.RecallArgs{Subject: "ann", AsOf: "2023-01-01T00:00:00Z"}, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got := r.recall(c.args)
			want(t, "answer", values(got), c.want)
		})
	}
	t.Run("refusals", func(t *testing.T) {
		for saying, a := range map[string]memory.RecallArgs{
			"nothing is asked": {}, "at most 1000": {Subject: "s", Limit: 1001}, "as_of": {Subject: "s", AsOf: "2024-01-01"},
			"observed_after": {Subject: "s", ObservedAfter: "zz"}, "observed_before": {Subject: "s", ObservedBefore: "yesterday"},
		} {
			_, err := r.Recall(ctx, r.caller, a)
			refused(t, err, saying)
		}
	})
}

func TestYearOneIsAnInstant(t *testing.T) {
	r := newRig(t, belief.Closed())
	a := r.args("user name Ann")
	a.ObservedAt = "0001-01-01T00:00:00Z"
	out, err := r.Remember(ctx, r.caller, a)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "dated", out.(memory.RememberResult).Stored.ObservedAt, time.Time{})
	a.ObservedAt = "0000-01-01T00:00:00+10:00"
	_, err = r.Remember(ctx, r.caller, a)
	refused(t, err, "years")
}

func TestForget(t *testing.T) {
	r := newRig(t, belief.Closed())
	r.remember("user uses_technology Go")
	r.remember("user uses_technology Rust")
	want(t, "one that is not believed", r.forget("user", "uses_technology", `"Zig"`), 0)
	want(t, "one", r.forget("USER", "uses_technology", `"go"`), 1)
	want(t, "again", r.forget("user", "uses_technology", `"go"`), 0)
	want(t, "what is left", values(r.recall(memory.RecallArgs{Subject: "user"})), "Rust")
	want(t, "all", r.forget("user", "uses_technology", ""), 1)
	for saying, a := range map[string]memory.ForgetArgs{
		"no predicate": {Subject: "user", Predicate: "likes"}, "subject": {Predicate: "name"}, "predicate is missing": {Subject: "user"},
		"value is missing": {Subject: "user", Predicate: "name", Value: memory.OptionalJSON{Given: true, Raw: json.RawMessage("null")}},
		"takes a string":   {Subject: "user", Predicate: "name", Value: memory.OptionalJSON{Given: true, Raw: json.RawMessage("1")}},
	} {
		_, err := r.Forget(ctx, r.caller, a)
		refused(t, err, saying)
	}
}

func TestRememberRefusals(t *testing.T) {
	r := newRig(t, belief.Open())
	half, refs := 1.5, make([]belief.Ref, 17)
	bad := "bogus"
	for saying, change := range map[string]func(*memory.RememberArgs){
		"subject":      func(a *memory.RememberArgs) { blank := "  "; a.Subject = &blank },
		"predicate":    func(a *memory.RememberArgs) { none := "___"; a.Predicate = &none },
		"value":        func(a *memory.RememberArgs) { a.Value = nil },
		"empty":        func(a *memory.RememberArgs) { a.Value = json.RawMessage(`" "`) },
		"takes a":      func(a *memory.RememberArgs) { a.Value = json.RawMessage(`1`) },
		"kind":         func(a *memory.RememberArgs) { a.Kind = &bad },
		"source":       func(a *memory.RememberArgs) { a.Source = &bad },
		"confidence":   func(a *memory.RememberArgs) { a.Confidence = &half },
		"observed_at":  func(a *memory.RememberArgs) { a.ObservedAt = "yesterday" },
		"at most 16":   func(a *memory.RememberArgs) { a.Replaces = &refs },
		"cardinality":  func(a *memory.RememberArgs) { unheard := "unheard_of"; a.Predicate, a.Cardinality = &unheard, &bad },
		"not go with":  func(a *memory.RememberArgs) { text := "x"; a.Text = &text },
		"text is miss": func(a *memory.RememberArgs) { *a = memory.RememberArgs{Statements: &[]memory.Proposal{}} },
	} {
		a := r.args("user name Ann")
		change(&a)
		_, err := r.Remember(ctx, r.caller, a)
		refused(t, err, saying)
	}
	t.Run("a refused statement defines no predicate", func(t *testing.T) {
		a := r.args("user brand_new x")
		a.Value = json.RawMessage(`""`)
		if _, err := r.Remember(ctx, r.caller, a); err == nil {
			t.Fatal("accepted")
		}
		rows, err := r.Predicates(ctx, r.caller)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rows {
			if p.Name == "brand_new" {
				t.Fatal("defined")
			}
		}
	})
	t.Run("the first value gives a new predicate its type", func(t *testing.T) {
		a := r.args("user height x")
		a.Value = json.RawMessage(`180`)
		if _, err := r.Remember(ctx, r.caller, a); err != nil {
			t.Fatal(err)
		}
		_, err := r.Remember(ctx, r.caller, r.args("user height tall"))
		refused(t, err, "takes a number")
	})
}

func TestTextWithStatements(t *testing.T) {
	r := newRig(t, belief.Closed())
	text := "I moved on and I use Emacs now, with Go."
	file := func(statements ...memory.Proposal) (memory.TextResult, error) {
		out, err := r.Remember(ctx, r.caller, memory.RememberArgs{Text: &text, Statements: &statements})
		result, _ := out.(memory.TextResult)
		return result, err
	}
	one := func(predicate, value, evidence string) memory.Proposal {
		return memory.Proposal{Subject: "ann", Predicate: predicate, Value: json.RawMessage(value), Evidence: evidence}
	}
	t.Run("one bad statement refuses the whole", func(t *testing.T) {
		good := one("prefers_editor", `"Emacs"`, "I use Emacs now")
		for saying, bad := range map[string]memory.Proposal{
			"word for word": one("name", `"x"`, "i USE emacs"), "evidence is missing": one("name", `"x"`, ""), "takes a string": one("name", `1`, "Go"),
			"value is missing": one("name", ``, "Go"),
			"subject":          {Predicate: "name", Value: json.RawMessage(`"x"`), Evidence: "Go"},
		} {
			_, err := file(good, bad)
			refused(t, err, saying)
		}
		want(t, "believed", len(r.recall(memory.RecallArgs{Subject: "ann"}))+len(r.recall(memory.RecallArgs{Subject: "user"})), 0)
	})
	got, err := file(one("prefers_editor", `"Emacs"`, "I use Emacs now"), one("likes", `"moving"`, "I moved on"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "kind of a preference", got.Results[0].Stored.Kind, belief.Preference)
	want(t, "unfiled", got.Unfiled[0].Predicate, "likes")
	want(t, "the text is a note about whom could not be filed", got.Results[1].Stored.Subject, "ann")
	want(t, "and the episode is one about the user", got.Episode.Stored.Subject, "user")
	found := r.recall(memory.RecallArgs{Subject: "ann", Predicate: "prefers_editor", WithSources: true})
	want(t, "source", found[0].SourceText, text)
	want(t, "evidence", found[0].Evidence, "I use Emacs now")
	want(t, "without being asked", r.recall(memory.RecallArgs{Subject: "ann", Predicate: "prefers_editor"})[0].Evidence, "")
	again, err := file()
	if err != nil {
		t.Fatal(err)
	}
	want(t, "a repeated text is known", again.Episode.AlreadyKnown && again.Results[0].AlreadyKnown, true)

	text = "I like moving."
	aboutUser := one("likes", `"moving"`, "I like moving")
	aboutUser.Subject = "user"
	got, err = file(aboutUser)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "about the user the episode is that note", got.Results[0].Stored.EventID, got.Episode.Stored.EventID)
	want(t, "and is told as it was filed", got.Results[0].AlreadyKnown, false)
}

func TestDiffAndExplain(t *testing.T) {
	r := newRig(t, belief.Open())
	for _, s := range []string{"user name A@2", "user name B@4", "user likes tea@3", "user dislikes tea@5", "user note alpha@1", "user note beta@1"} {
		r.remember(s)
	}
	diff := func(from, to int) string {
		f := on(from)
		d, err := r.Diff(ctx, r.caller, memory.DiffArgs{From: &f, To: on(to)})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range d.Changes {
			out = append(out, fmt.Sprint(c.Predicate, c.Before, c.After))
		}
		return strings.Join(out, " ")
	}
	want(t, "from before", diff(2, 4), "likes[] [user likes: tea] name[user name: A] [user name: B]")
	want(t, "what a statement elsewhere ended", diff(4, 5), "dislikes[] [user dislikes: tea] likes[user likes: tea] []")
	want(t, "nothing", diff(5, 6), "")
	_, err := r.Diff(ctx, r.caller, memory.DiffArgs{})
	refused(t, err, "from is missing")
	rows, err := r.Explain(ctx, r.caller, memory.ExplainArgs{Question: "alpha"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "explained", len(rows), 1)
	want(t, "one note's history leaves the others out", len(rows[0].History), 1)
}

func TestNamespacesNeverMeet(t *testing.T) {
	r := newRig(t, belief.Open())
	mine, other := r.caller, memory.Caller{Namespace: "agents:run-2"}
	r.remember("user name secret")
	r.remember("user my_word secret")
	if _, err := r.Resume(ctx, mine, resume("worker")); err != nil {
		t.Fatal(err)
	}
	turn(t, r, mine, "worker", "secret")
	r.caller = other
	for _, a := range []memory.RecallArgs{{Subject: "user"}, {Predicate: "name"}, {Query: "secret"}, {Subject: "user", Query: "secret", AsOf: on(5000)}} {
		want(t, fmt.Sprintf("recall %+v", a), len(r.recall(a)), 0)
	}
	events, err := r.History(ctx, other, memory.PairArgs{Subject: "user", Predicate: "name"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "history", len(events), 0)
	from := on(0)
	d, err := r.Diff(ctx, other, memory.DiffArgs{From: &from})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "diff", len(d.Changes), 0)
	rows, err := r.Explain(ctx, other, memory.ExplainArgs{Question: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "explain", len(rows), 0)
	predicates, err := r.Predicates(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "predicates", len(predicates), len(belief.Open().Starters()))
	_, err = r.AgentContext(ctx, other, memory.AgentArgs{AgentID: "worker"})
	refused(t, err, "not resumed")
	got, err := r.Resume(ctx, other, resume("worker"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "an agent of the same name is another", got.Fresh, true)
	want(t, "and takes no lease away", turn(t, r, mine, "worker", "still mine").Seq, 2)
}
