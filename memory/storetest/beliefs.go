package storetest

import (
	"fmt"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/belief"
)

func events(t *testing.T, open Open) {
	s := fresh(t, open)
	early := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC) // the zero of Go's clock is an instant like any other
	all := []belief.Event{
		statement("m-1", "s", "did", "B", day(2)),
		statement("m-2", "s", "did", "A", day(1)),
		statement("m-3", "s", "name", "C", day(1)),
		statement("m-4", "t", "did", "D", day(1).Add(time.Nanosecond)),
		statement("m-5", "s", "did", "E", early),
		belief.Retraction("s", "did", belief.Value{}, day(2), "m-6"),
	}
	all[5].ReplacedBy = "m-1"
	write(t, s, func(w memory.Writer) error { return w.Append(all) })
	for i := 1; i < len(all); i++ {
		if all[i].Seq <= all[i-1].Seq {
			t.Fatalf("Seq does not grow: %d after %d", all[i].Seq, all[i-1].Seq)
		}
	}
	read(t, s, func(r memory.Reader) error {
		at, later := day(1), day(9)
		for _, c := range []struct {
			rule   string
			filter memory.EventFilter
			want   string
		}{
			{"all in order of time, then of writing", memory.EventFilter{}, "m-5 m-2 m-3 m-4 m-1 m-6"},
			{"of a subject", memory.EventFilter{Subject: "t"}, "m-4"},
			{"of a pair", memory.EventFilter{Subject: "s", Predicates: []string{"did"}}, "m-5 m-2 m-1 m-6"},
			{"of several predicates", memory.EventFilter{Subject: "s", Predicates: []string{"did", "name", "none"}}, "m-5 m-2 m-3 m-1 m-6"},
			{"up to an instant, included", memory.EventFilter{UpTo: &at}, "m-5 m-2 m-3"},
			{"after an instant, not included", memory.EventFilter{After: &at}, "m-4 m-1 m-6"},
			{"the first ones", memory.EventFilter{Limit: 2}, "m-5 m-2"},
			{"none", memory.EventFilter{After: &later}, ""},
		} {
			got, err := r.Events(c.filter)
			if err != nil {
				return err
			}
			want(t, c.rule, ids(got), c.want)
		}
		for _, e := range all {
			got, ok, err := r.Event(e.ID)
			if err != nil {
				return err
			}
			want(t, e.ID+" as it was written", fmt.Sprintf("%+v %v", got, ok), fmt.Sprintf("%+v true", e))
		}
		_, ok, err := r.Event("m-9")
		want(t, "an event that is not there", ok, false)
		if err != nil {
			return err
		}
		latest, err := r.Latest("s", []string{"name", "did"})
		if err != nil {
			return err
		}
		want(t, "the latest of a subject", *latest, day(2))
		latest, err = r.Latest("nobody", []string{"name", "did"})
		want(t, "the latest of nobody", latest == nil, true)
		if err != nil {
			return err
		}
		pairs, err := r.Pairs(day(1), day(2), "")
		want(t, "pairs changed after the first instant and not after the second", len(pairs), 2)
		return err
	})
}

func beliefs(t *testing.T, open Open) {
	s := fresh(t, open)
	write(t, s, func(w memory.Writer) error {
		return put(w,
			statement("m-1", "s", belief.Note, "n", day(1)),
			statement("m-2", "s", "role", "b", day(2)),
			statement("m-3", "s", "did", "B", day(3)),
			statement("m-4", "s", "did", "a", day(1)),
			statement("m-5", "r", "did", "B", day(4)),
		)
	})
	two, three := day(2), day(3)
	find := func(rule string, f memory.Filter, wanted string) {
		t.Helper()
		read(t, s, func(r memory.Reader) error {
			found, err := r.Beliefs(f)
			want(t, rule, values(found), wanted)
			return err
		})
	}
	find("notes last, then by subject, predicate and time", memory.Filter{}, "B | a | B | b | n")
	find("of a subject", memory.Filter{Subject: "s"}, "a | B | b | n")
	find("of a predicate", memory.Filter{Predicate: "did"}, "B | a | B")
	find("of a pair", memory.Filter{Subject: "s", Predicate: "did"}, "a | B")
	find("of a value, without regard to case", memory.Filter{Subject: "s", Key: belief.Text("b").Key()}, "B | b")
	find("not of a predicate", memory.Filter{Subject: "s", NotPredicate: "did"}, "b | n")
	find("no notes", memory.Filter{NoNotes: true}, "B | a | B | b")
	find("since an instant, included", memory.Filter{After: &three}, "B | B")
	find("until an instant, included", memory.Filter{Before: &two}, "a | b | n")
	find("with at least a confidence", memory.Filter{MinConfidence: 0.25}, "B | a | B | b | n")
	find("with more confidence than anything has", memory.Filter{MinConfidence: 0.26}, "")
	find("the first ones", memory.Filter{Limit: 2}, "B | a")
	read(t, s, func(r memory.Reader) error {
		found, err := r.Beliefs(memory.Filter{Subject: "s", Predicate: "did", Limit: 1})
		if err != nil {
			return err
		}
		e, _, err := r.Event("m-4")
		if err != nil {
			return err
		}
		want(t, "a belief as it was written", fmt.Sprintf("%+v", found), fmt.Sprintf("%+v", believed(e)))
		else1, err := r.Elsewhere([]belief.Belief{{Subject: "s", Value: belief.Text("B")}, {Subject: "s", Value: belief.Text("n")}})
		want(t, "of the same subject and value, no notes", values(else1), "B | b")
		return err
	})
	write(t, s, func(w memory.Writer) error {
		found, err := w.Beliefs(memory.Filter{Subject: "s", Predicate: "role"})
		if err != nil {
			return err
		}
		if err := w.DropBeliefs(found); err != nil {
			return err
		}
		return w.ReplaceBeliefs(memory.Pair{Subject: "s", Predicate: "did"}, nil)
	})
	find("without what was dropped", memory.Filter{}, "B | n")
	read(t, s, func(r memory.Reader) error {
		all, err := r.Events(memory.EventFilter{})
		want(t, "events stay when beliefs are dropped", len(all), 5)
		return err
	})
}

func search(t *testing.T, open Open) {
	s := fresh(t, open)
	write(t, s, func(w memory.Writer) error {
		return put(w,
			statement("m-1", "ann", belief.Note, "kafka everywhere", day(1)),
			statement("m-2", "ann", "did", "running a marathon", day(2)),
			statement("m-3", "ann", "uses_technology", "kafka and more kafka", day(3)),
			statement("m-4", "ann", "uses_technology", "postgres databases", day(4)),
			statement("m-5", "bob", "did", "Café in Zürich", day(5)),
			statement("m-6", "bob", "did", "東京タワー", day(6)),
		)
	})
	find := func(rule string, f memory.Filter, q memory.Search, wanted string) {
		t.Helper()
		f.Search = &q
		read(t, s, func(r memory.Reader) error {
			found, err := r.Beliefs(f)
			want(t, rule, values(found), wanted)
			return err
		})
	}
	words := func(w ...string) memory.Search { return memory.Search{Words: w, Select: true} }
	find("what shares a word, notes last", memory.Filter{}, words("kafka"), "kafka and more kafka | kafka everywhere")
	find("what shares no word is left out", memory.Filter{}, words("zebra"), "")
	find("without words nothing is selected", memory.Filter{}, memory.Search{Select: true}, "")
	find("word forms are one", memory.Filter{}, words("runs", "database"), "postgres databases | running a marathon")
	find("accents are no difference", memory.Filter{}, words("cafe", "zurich"), "Café in Zürich")
	find("words of a script without spaces", memory.Filter{}, words(belief.Words("タワー")...), "東京タワー")
	find("the subject is searched too", memory.Filter{}, words("bob", "zurich"), "Café in Zürich | 東京タワー")
	find("and the predicate", memory.Filter{}, words("technologies", "postgres"), "postgres databases | kafka and more kafka")
	find("filters go first", memory.Filter{Subject: "bob"}, words("kafka"), "")
	find("the best ones", memory.Filter{Limit: 1}, words("kafka"), "kafka and more kafka")
	find("a search that does not select puts in order", memory.Filter{Subject: "ann"}, memory.Search{Words: []string{"marathon"}},
		"running a marathon | postgres databases | kafka and more kafka | kafka everywhere")
	span := belief.Span{From: day(4), To: day(6)}
	find("a span of time goes first", memory.Filter{}, memory.Search{Words: []string{"kafka"}, Span: span, Select: true},
		"Café in Zürich | postgres databases | kafka and more kafka | kafka everywhere")
	find("and selects by itself", memory.Filter{}, memory.Search{Span: span, Select: true}, "Café in Zürich | postgres databases")
}

// ranking wants an order that is the same on every engine: what a word weighs is told from how many hold it.
func ranking(t *testing.T, open Open) {
	s := fresh(t, open)
	const many = 3000 // more than a search looks at
	write(t, s, func(w memory.Writer) error {
		for i := range many {
			value := fmt.Sprintf("even thing%d", i)
			if i%2 == 1 {
				value = fmt.Sprintf("odd thing%d", i)
			}
			if i%1000 == 500 {
				value += " rare"
			}
			at := day(0).Add(time.Duration(i) * time.Second)
			if err := put(w, statement(fmt.Sprintf("m-%d", i), fmt.Sprintf("subject%d", i%3), "uses_technology", value, at)); err != nil {
				return err
			}
		}
		return put(w, statement("m-note", "subject0", belief.Note, "a rare even note", day(9)), statement("m-few", "few", "did", "odd even", day(-1)),
			statement("m-old", "subject0", "did", "old words", day(-2)))
	})
	find := func(rule string, f memory.Filter, wanted string, words ...string) {
		t.Helper()
		if f.Search == nil {
			f.Search = &memory.Search{Select: true}
		}
		f.Search.Words = words
		read(t, s, func(r memory.Reader) error {
			found, err := r.Beliefs(f)
			want(t, rule, values(found), wanted)
			return err
		})
	}
	span := belief.Span{From: day(0).Add(10 * time.Second), To: day(0).Add(13 * time.Second)}
	find("of equals the newest", memory.Filter{Limit: 3}, "even thing2998 | even thing2996 | even thing2994", "even")
	find("a rare word weighs more than a common one", memory.Filter{Limit: 4}, "even thing2500 rare | even thing1500 rare | even thing500 rare | odd thing2999", "odd", "rare")
	find("each word counts", memory.Filter{Limit: 4}, "even thing2500 rare | even thing1500 rare | even thing500 rare | even thing2998", "even", "rare")
	find("the rarest word finds what is old", memory.Filter{Limit: 2}, "even thing10 | odd thing2999", "odd", "thing10")
	find("notes last, when there is room", memory.Filter{Limit: 4}, "even thing2500 rare | even thing1500 rare | even thing500 rare | a rare even note", "rare")
	find("of a subject that has many", memory.Filter{Subject: "subject0", Limit: 2}, "even thing2994 | even thing2988", "even")
	find("of a subject that has few", memory.Filter{Subject: "few", Limit: 2}, "odd even", "even")
	find("a search that only orders is filled up with the newest", memory.Filter{Subject: "subject1", Limit: 2, Search: &memory.Search{}},
		"odd thing2899 | even thing2998", "thing2899")
	find("not of a predicate that nearly all are of", memory.Filter{Subject: "subject0", NotPredicate: "uses_technology", Limit: 2, Search: &memory.Search{}},
		"old words | a rare even note", "rare")
	find("of a predicate", memory.Filter{Predicate: "uses_technology", Limit: 2, Search: &memory.Search{}}, "even thing4 | odd thing2999", "thing4")
	find("a span first, by words within it", memory.Filter{Limit: 5, Search: &memory.Search{Select: true, Span: span}},
		"odd thing11 | even thing12 | even thing10 | odd thing2999 | odd thing2997", "odd")
	before := day(0).Add(5 * time.Second)
	find("no later than an instant", memory.Filter{Limit: 2, Before: &before}, "even thing4 | even thing2", "even")
	find("as sure as asked", memory.Filter{Limit: 2, MinConfidence: 0.5}, "", "even")
	write(t, s, func(w memory.Writer) error {
		found, err := w.Beliefs(memory.Filter{Limit: 1, Search: &memory.Search{Words: []string{"thing2998"}, Select: true}})
		if err != nil {
			return err
		}
		return w.DropBeliefs(found)
	})
	find("nothing that was dropped", memory.Filter{Limit: 1}, "even thing2996", "even")
}
