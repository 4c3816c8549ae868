package storetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/belief"
)

// Open opens the store kept under a name, or creates it. The same name within one test is the same store.
type Open func(t *testing.T, name string) memory.Store

// Run holds a store to the contract.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"writing":    writing,
		"events":     events,
		"beliefs":    beliefs,
		"search":     search,
		"ranking":    ranking,
		"predicates": predicates,
		"isolation":  isolation,
		"fencing":    fencing,
		"sessions":   sessions,
		"records":    records,
		"extending":  extending,
		"transfer":   transfer,
		"erasing":    erasing,
		"usage":      usage,
		"vectors":    vectors,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

const ns = "tenant:agent"

var (
	ctx   = context.Background()
	start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
)

func day(n int) time.Time { return start.AddDate(0, 0, n) }

// fresh opens a new store.
func fresh(t *testing.T, open Open) memory.Store {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "store"))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func write(t *testing.T, s memory.Store, fn func(memory.Writer) error) {
	t.Helper()
	if err := s.Write(ctx, ns, fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func read(t *testing.T, s memory.Store, fn func(memory.Reader) error) {
	t.Helper()
	if err := s.Read(ctx, ns, fn); err != nil {
		t.Fatalf("read: %v", err)
	}
}

// statement is an event with every member set.
func statement(id, subject, predicate, value string, at time.Time) belief.Event {
	return belief.Event{
		ID: id, Kind: belief.Preference, Subject: subject, Predicate: predicate, Value: belief.Text(value), Confidence: 0.25,
		Source: belief.ToolResult, ObservedAt: at, Evidence: "words", EvidenceID: "m-text",
		Replaces: []belief.Prior{{Predicate: "role", Value: belief.Num(1), Source: belief.UserStated, ObservedAt: start, EventID: "m-old"}},
	}
}

// put appends statements and keeps them as beliefs.
func put(w memory.Writer, events ...belief.Event) error {
	if err := w.Append(events); err != nil {
		return err
	}
	for _, e := range events {
		if err := w.PutBeliefs(believed(e)); err != nil {
			return err
		}
	}
	return nil
}

func believed(e belief.Event) []belief.Belief {
	multi := func(name string) belief.Predicate { return belief.Predicate{Name: name, Cardinality: belief.Multi} }
	return belief.Fold(multi, []belief.Event{e}).All()
}

func ids(events []belief.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

func values(found []belief.Belief) string {
	var out []string
	for _, b := range found {
		out = append(out, b.Value.String())
	}
	return strings.Join(out, " | ")
}

func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func writing(t *testing.T, open Open) {
	t.Run("what fn wrote is undone when it fails", func(t *testing.T) {
		s := fresh(t, open)
		refused := errors.New("no")
		err := s.Write(ctx, ns, func(w memory.Writer) error {
			if err := put(w, statement("m-1", "s", "did", "A", day(1))); err != nil {
				return err
			}
			return refused
		})
		if !errors.Is(err, refused) {
			t.Fatalf("got %v", err)
		}
		read(t, s, func(r memory.Reader) error {
			found, err := r.Beliefs(memory.Filter{})
			want(t, "beliefs", len(found), 0)
			return err
		})
	})
	t.Run("a namespace has one write at a time", func(t *testing.T) {
		s := fresh(t, open)
		var wg sync.WaitGroup
		const writers = 8
		for i := range writers {
			wg.Go(func() {
				err := s.Write(ctx, ns, func(w memory.Writer) error {
					found, err := w.Beliefs(memory.Filter{Subject: "counter"})
					if err != nil {
						return err
					}
					return put(w, statement(fmt.Sprintf("m-%d", i), "counter", "did", fmt.Sprint(len(found)), day(len(found))))
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		read(t, s, func(r memory.Reader) error {
			found, err := r.Beliefs(memory.Filter{})
			want(t, "values", values(found), "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7")
			return err
		})
	})
	t.Run("what was written is there after the store was opened again", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "store")
		s := open(t, path)
		write(t, s, func(w memory.Writer) error { return put(w, statement("m-1", "s", "did", "A", day(1))) })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, path)
		defer func() { _ = s.Close() }()
		read(t, s, func(r memory.Reader) error {
			found, err := r.Beliefs(memory.Filter{})
			want(t, "values", values(found), "A")
			return err
		})
	})
	t.Run("a call whose context has ended fails", func(t *testing.T) {
		s := fresh(t, open)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := s.Write(ended, ns, func(memory.Writer) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("write: %v", err)
		}
		if err := s.Read(ended, ns, func(memory.Reader) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
		if err := s.Ping(ctx); err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}

func isolation(t *testing.T, open Open) {
	s := fresh(t, open)
	const other = "tenant:other"
	write(t, s, func(w memory.Writer) error {
		if err := put(w, statement("m-1", "s", "did", "secret", day(1))); err != nil {
			return err
		}
		return w.Define(belief.Predicate{Name: "mine", Cardinality: belief.Single, ValueType: belief.String})
	})
	look := func(namespace string) {
		err := s.Read(ctx, namespace, func(r memory.Reader) error {
			b, err1 := r.Beliefs(memory.Filter{})
			q, err2 := r.Beliefs(memory.Filter{Search: &memory.Search{Words: []string{"secret"}, Select: true}})
			x, err3 := r.Elsewhere([]belief.Belief{{Subject: "s", Value: belief.Text("secret")}})
			e, err4 := r.Events(memory.EventFilter{})
			_, found, err5 := r.Event("m-1")
			p, err6 := r.Pairs(day(0), day(9), "")
			l, err7 := r.Latest("s", []string{"did"})
			d, err8 := r.Predicates()
			if n := len(b) + len(q) + len(x) + len(e) + len(p) + len(d); n > 0 || found || l != nil {
				t.Errorf("%s sees %v %v %v %v %v %v %v %v", namespace, b, q, x, e, found, p, l, d)
			}
			return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8)
		})
		if err != nil {
			t.Error(err)
		}
	}
	look("tenant") // never written to
	look(other)
	err := s.Write(ctx, other, func(w memory.Writer) error {
		if err := w.ReplaceBeliefs(memory.Pair{Subject: "s", Predicate: "did"}, nil); err != nil {
			return err
		}
		return w.DropBeliefs([]belief.Belief{{Seq: 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	look(other)
	read(t, s, func(r memory.Reader) error {
		found, err := r.Beliefs(memory.Filter{})
		want(t, "what the other namespace could not take away", values(found), "secret")
		return err
	})
}

func predicates(t *testing.T, open Open) {
	s := fresh(t, open)
	p := belief.Predicate{Name: "height", Cardinality: belief.Single, ValueType: belief.Number, Description: "how tall", DefinedAt: day(3)}
	write(t, s, func(w memory.Writer) error { return w.Define(p) })
	read(t, s, func(r memory.Reader) error {
		all, err := r.Predicates()
		if err != nil {
			return err
		}
		want(t, "defined", fmt.Sprint(all), fmt.Sprint([]belief.Predicate{p}))
		got, ok, err := r.Predicate("height")
		want(t, "found", fmt.Sprint(got, ok), fmt.Sprint(p, true))
		if err != nil {
			return err
		}
		_, ok, err = r.Predicate("width")
		want(t, "one that is not defined", ok, false)
		return err
	})
}
