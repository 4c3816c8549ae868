package belief_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/memory/belief"
)

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// day is an instant of the tests: that many days after they begin.
func day(n int) time.Time { return start.AddDate(0, 0, n) }

func rules(name string) belief.Predicate {
	if p, ok := belief.Open().Starter(name); ok {
		return p
	}
	return belief.Predicate{Name: name, Cardinality: belief.Multi}
}

// log writes events in short: "3 name=Ann" states it on day 3, "4 name-Ann" takes it back, "4 name-" takes all back. They
// are given the ids e1, e2 and so on in the order of writing.
func log(t *testing.T, lines ...string) []belief.Event {
	t.Helper()
	var out []belief.Event
	for i, line := range lines {
		var at int
		var rest string
		if _, err := fmt.Sscanf(line, "%d %s", &at, &rest); err != nil {
			t.Fatalf("event %q: %v", line, err)
		}
		e := belief.Event{ID: fmt.Sprintf("e%d", i+1), Seq: int64(i + 1), Subject: "s", ObservedAt: day(at), Kind: belief.Fact, Source: belief.UserStated, Confidence: 1}
		sep := strings.IndexAny(rest, "=-")
		e.Predicate, e.Retraction = rest[:sep], rest[sep] == '-'
		if v := rest[sep+1:]; v != "" {
			e.Value = belief.Text(v)
		}
		out = append(out, e)
	}
	belief.SortEvents(out)
	return out
}

// told writes beliefs in short: "name=Ann@3<Bob" is Ann under name, stated on day 3, which replaced Bob.
func told(beliefs []belief.Belief) string {
	out := make([]string, len(beliefs))
	for i, b := range beliefs {
		out[i] = fmt.Sprintf("%s=%s@%d", b.Predicate, b.Value, int(b.ObservedAt.Sub(start).Hours()/24))
		for _, p := range b.Replaced {
			out[i] += "<"
			if p.Predicate != "" {
				out[i] += p.Predicate + ":"
			}
			out[i] += p.Value.String()
		}
	}
	return strings.Join(out, " ")
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		rule   string
		events []string
		want   string
	}{
		{"a statement is believed", []string{"1 name=A"}, "name=A@1"},
		{"a single-valued predicate has the latest value alone", []string{"1 name=A", "2 name=B"}, "name=B@2<A"},
		{"a multi-valued predicate gathers values in order of time", []string{"2 did=B", "1 did=A"}, "did=A@1 did=B@2"},
		{"returning to an earlier value is a new statement", []string{"1 name=A", "2 name=B", "3 name=A"}, "name=A@3<B"},
		{"a statement dated before a later one is history only", []string{"3 name=A", "2 name=B"}, "name=A@3<B"},
		{"of two events that state one value the later stands for it", []string{"3 did=A", "1 did=a"}, "did=A@3"},
		{"and keeps what the earlier one replaced", []string{"3 name=A", "1 name=B", "2 name=A"}, "name=A@3<B"},
		{"a retraction ends one value", []string{"1 did=A", "2 did=B", "3 did-A"}, "did=B@2"},
		{"values are the same without regard to case", []string{"1 did=Abc", "3 did-aBC"}, ""},
		{"a retraction without a value ends all", []string{"1 did=A", "2 did=B", "3 did-"}, ""},
		{"forgetting does not revive what was superseded", []string{"1 name=A", "2 name=B", "3 name-B"}, ""},
		{"a value that comes back after being forgotten replaced nothing", []string{"1 name=A", "2 name-A", "3 name=A"}, "name=A@3"},
		{"a statement written later but dated before a retraction of all ends with it", []string{"1 did=A", "3 did-", "2 did=B"}, ""},
		{"a retraction of one value leaves one dated between standing", []string{"1 did=A", "3 did-A", "2 did=B"}, "did=B@2"},
		{"of two events at one instant the one written later counts", []string{"1 name=A", "1 name=B"}, "name=B@1<A"},
		{"a retraction at the instant of a statement follows it when written later", []string{"1 did=A", "1 did-A"}, ""},
		{"what excludes ends the same value elsewhere", []string{"1 likes=tea", "2 dislikes=Tea"}, "dislikes=Tea@2<likes:tea"},
		{"and another value stays", []string{"1 likes=tea", "2 dislikes=mud"}, "dislikes=mud@2 likes=tea@1"},
		{"giving away ends owning", []string{"1 owns=hat", "2 gave_away=hat"}, "gave_away=hat@2"},
		{"owning again does not end having given away", []string{"1 gave_away=hat", "2 owns=hat"}, "gave_away=hat@1 owns=hat@2"},
		{"what is owned again is no longer told as given up", []string{"1 owns=hat", "2 gave_away=hat", "3 owns=hat"}, "gave_away=hat@2 owns=hat@3"},
		{"giving away a second time ends owning as well", []string{"1 gave_away=hat", "2 owns=hat", "3 gave_away=hat"}, "gave_away=hat@3"},
		{"an unknown predicate loses no value", []string{"1 zzz=A", "2 zzz=B"}, "zzz=A@1 zzz=B@2"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := told(belief.Fold(rules, log(t, c.events...)).All()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// remember states a value on a day, in the state that the events amount to.
func remember(t *testing.T, at int, predicate, value string, refs []belief.Ref, events ...string) belief.Remembered {
	t.Helper()
	var upTo []belief.Event
	for _, e := range log(t, events...) {
		if !e.ObservedAt.After(day(at)) {
			upTo = append(upTo, e)
		}
	}
	n := 0
	return belief.Fold(rules, upTo).Remember(belief.Statement{
		Subject: "s", Predicate: predicate, Value: belief.Text(value), At: day(at), Replaces: refs, Kind: belief.Fact, Source: belief.UserStated, Confidence: 1,
	}, belief.Open().Canonical, func() string { n++; return fmt.Sprintf("n%d", n) })
}

func ref(predicate, rawValue string) belief.Ref {
	return belief.Ref{Predicate: predicate, Value: []byte(rawValue)}
}

func TestRemember(t *testing.T) {
	t.Run("a value restated while believed writes nothing", func(t *testing.T) {
		r := remember(t, 2, "name", "ANN", nil, "1 name=Ann")
		if !r.Known || len(r.Events) != 0 || r.Stored.EventID != "e1" || r.Stored.Value.String() != "Ann" {
			t.Fatalf("got %+v", r)
		}
	})
	t.Run("the test is made at the statement's own instant", func(t *testing.T) {
		if r := remember(t, 1, "name", "Ann", nil, "2 name=Ann"); r.Known || len(r.Events) != 1 {
			t.Fatalf("got %+v", r)
		}
		if r := remember(t, 1, "name", "Ann", nil, "1 name=Ann", "2 name=Bob"); !r.Known {
			t.Fatalf("got %+v", r)
		}
	})
	t.Run("it tells what it ended: its own pair's value, then others'", func(t *testing.T) {
		r := remember(t, 3, "dislikes", "tea", []belief.Ref{ref("role", `"pilot"`)}, "1 likes=tea", "2 role=pilot")
		if got := told(r.Superseded); got != "likes=tea@1 role=pilot@2" {
			t.Fatalf("superseded %s", got)
		}
		if got := told([]belief.Belief{r.Stored}); got != "dislikes=tea@3<role:pilot" {
			t.Fatalf("stored %s", got)
		}
		if len(r.Events) != 2 || !r.Events[1].Retraction || r.Events[1].ReplacedBy != "n1" || r.Events[0].Replaces[0].EventID != "e2" {
			t.Fatalf("events %+v", r.Events)
		}
	})
	t.Run("what nobody believed is told as unreplaced, as it was given", func(t *testing.T) {
		refs := []belief.Ref{ref("role", `"x"`), ref("role", `"X"`), ref("nope", `"y"`), ref("role", `1`), {Predicate: "role"}, ref("role", `[1]`)}
		r := remember(t, 3, "name", "A", refs, "1 likes=tea")
		if len(r.Unreplaced) != 5 || len(r.Superseded) != 0 {
			t.Fatalf("unreplaced %+v", r.Unreplaced)
		}
	})
	t.Run("the statement itself and what it ends anyway are not named", func(t *testing.T) {
		refs := []belief.Ref{ref("name", `"B"`), ref("name", `"a"`)}
		r := remember(t, 3, "name", "B", refs, "1 name=A")
		if len(r.Unreplaced) != 0 || len(r.Events) != 1 || len(r.Events[0].Replaces) != 0 || told(r.Superseded) != "name=A@1" {
			t.Fatalf("got %+v", r)
		}
	})
	t.Run("what it excludes may be named: that is withdrawn, and told once", func(t *testing.T) {
		r := remember(t, 3, "dislikes", "tea", []belief.Ref{ref("likes", `"tea"`)}, "1 likes=tea")
		if len(r.Events) != 2 || !r.Events[1].Retraction || told(r.Superseded) != "likes=tea@1" || len(r.Stored.Replaced) != 1 {
			t.Fatalf("got %+v", r)
		}
		s := belief.Fold(rules, append(log(t, "1 likes=tea"), r.Events...))
		if got := told(s.All()); got != "dislikes=tea@3<likes:tea" {
			t.Fatalf("believed %s", got)
		}
	})
	t.Run("nor is an old value of a single-valued pair that nobody believes", func(t *testing.T) {
		if r := remember(t, 3, "name", "B", []belief.Ref{ref("name", `"zzz"`)}, "1 name=A"); len(r.Unreplaced) != 0 {
			t.Fatalf("got %+v", r)
		}
	})
	t.Run("another value of its own multi-valued pair is withdrawn by name", func(t *testing.T) {
		r := remember(t, 3, "likes", "B", []belief.Ref{ref("likes", `"a"`)}, "1 likes=A")
		if told(r.Superseded) != "likes=A@1" || r.Stored.Replaced[0].Predicate != "likes" {
			t.Fatalf("got %+v", r)
		}
	})
	t.Run("what happened, and texts, are not withdrawn by name", func(t *testing.T) {
		r := remember(t, 3, "name", "B", []belief.Ref{ref("did", `"a"`), ref("note", `"n"`)}, "1 did=a", "2 note=n")
		if len(r.Unreplaced) != 2 || len(r.Events) != 1 {
			t.Fatalf("got %+v", r)
		}
	})
	t.Run("nor are they counted once, because they are never looked up", func(t *testing.T) {
		r := remember(t, 3, "name", "B", []belief.Ref{ref("did", `"a"`), ref("did", `"A"`), ref("note", `"n"`), ref("note", `"n"`)}, "1 did=a")
		if len(r.Unreplaced) != 4 {
			t.Fatalf("unreplaced %+v", r.Unreplaced)
		}
	})
	t.Run("a known value that withdraws something is written once more to carry it", func(t *testing.T) {
		r := remember(t, 4, "name", "Ann", []belief.Ref{ref("role", `"pilot"`)}, "1 name=Bob", "2 name=Ann", "3 role=pilot")
		if !r.Known || len(r.Events) != 2 || told(r.Superseded) != "role=pilot@3" {
			t.Fatalf("got %+v", r)
		}
		s := belief.Fold(rules, append(log(t, "1 name=Bob", "2 name=Ann", "3 role=pilot"), r.Events...))
		if got := told(s.All()); got != "name=Ann@4<Bob<role:pilot" {
			t.Fatalf("believed %s", got)
		}
	})
}

func TestChangedFollowsTheFold(t *testing.T) {
	s := belief.Fold(rules, log(t, "1 name=A", "1 did=x", "2 did=y"))
	before := s.All()
	for _, e := range log(t, "3 name=B", "4 did-x") {
		e.ID = "new " + e.ID
		s.Apply(e)
	}
	dropped, put := s.Changed(before)
	slices.SortFunc(dropped, func(a, b belief.Belief) int { return strings.Compare(a.Predicate, b.Predicate) })
	if told(dropped) != "did=x@1 name=A@1" || told(put) != "name=B@3<A" {
		t.Fatalf("dropped %s, put %s", told(dropped), told(put))
	}
}
