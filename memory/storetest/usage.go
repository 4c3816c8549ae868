package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sallyport/memory"
	"sallyport/memory/agent"
	"sallyport/memory/belief"
	"sallyport/memory/limits"
)

func holdings(t *testing.T, s memory.Store) (out limits.Usage) {
	t.Helper()
	undo := errors.New("only to look")
	err := s.Write(ctx, ns, func(w memory.Writer) error {
		sum, added, err := w.Usage()
		want(t, "added by nothing", added, limits.Usage{})
		out = sum
		return errors.Join(err, undo)
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	return out
}

func usage(t *testing.T, open Open) {
	s := fresh(t, open)
	event := belief.Event{ID: "m-1", Subject: "s", Predicate: "did", Value: belief.Text("ab"), ObservedAt: day(1), Evidence: "xyz"}
	fenced := func(fn func(memory.AgentWriter) error) func(memory.Writer) error {
		return func(w memory.Writer) error {
			a, err := w.Fenced("run", 1)
			if err != nil {
				return err
			}
			return fn(a)
		}
	}
	turn := agent.Turn{Seq: 1, Role: "user", Content: "hello", At: day(1)}
	var smaller, larger int64
	for _, c := range []struct {
		rule    string
		write   func(memory.Writer) error
		records int64
		bytes   int64 // -1 for more, -2 for less, whatever it is
	}{
		{"an event is its texts", func(w memory.Writer) error { return w.Append([]belief.Event{event}) }, 1, 1 + 3 + 4 + 3},
		{"a belief is no more than its event", func(w memory.Writer) error {
			return w.PutBeliefs(believed(belief.Event{ID: "m-1", Seq: 1, Value: belief.Text("ab")}))
		}, 0, 0},
		{"a predicate", func(w memory.Writer) error { return w.Define(belief.Predicate{Name: "pet", Description: "d"}) }, 1, 4},
		{"a first lease is an agent", func(w memory.Writer) error { return w.PutLease("run", agent.Lease{Epoch: 1, Held: true}) }, 1, 3},
		{"a later one is not", func(w memory.Writer) error { return w.PutLease("run", agent.Lease{Epoch: 1, Held: true, Holder: "h"}) }, 0, 0},
		{"a first session", func(w memory.Writer) error {
			return w.PutSession("run", agent.Session{Owner: agent.Owner{Pod: "p"}, Rank: 1})
		}, 1, 4},
		{"a later one", func(w memory.Writer) error {
			return w.PutSession("run", agent.Session{Owner: agent.Owner{Pod: "p"}, Rank: 1, Holder: "h"})
		}, 0, 0},
		{"a turn", fenced(func(a memory.AgentWriter) error { return a.PutTurn(turn) }), 1, -1},
		{"a state", fenced(func(a memory.AgentWriter) error { return a.PutState(agent.State{Version: 1, Goal: "g"}) }), 1, -1},
		{"an output", fenced(func(a memory.AgentWriter) error {
			return a.PutOutput(agent.Output{Ref: "r", Tool: "t", Summary: "s"}, "1234")
		}), 1, 6},
		{"an output in the place of another", fenced(func(a memory.AgentWriter) error { return a.PutOutput(agent.Output{Ref: "r", Tool: "t"}, "12") }), 0, -3},
		{"a pointer", fenced(func(a memory.AgentWriter) error { return a.PutPointer(agent.Pointer{Name: "p", Note: "a long note"}) }), 1, -1},
		{"a pointer in the place of a longer one", fenced(func(a memory.AgentWriter) error { return a.PutPointer(agent.Pointer{Name: "p", Note: "a note"}) }), 0, -5},
		{"an action", fenced(func(a memory.AgentWriter) error {
			return a.PutAction(agent.Action{Seq: 1, Tool: "t", Status: agent.Started})
		}), 1, -1},
		{"an action that ends", fenced(func(a memory.AgentWriter) error {
			return a.PutAction(agent.Action{Seq: 1, Tool: "t", Status: agent.Started, Result: "abc"})
		}), 0, int64(len(`,"result":"abc"`))},
		{"a pointer that goes", fenced(func(a memory.AgentWriter) error { return a.RemovePointer("p") }), -1, -2},
		{"a pointer that was not there", fenced(func(a memory.AgentWriter) error { return a.RemovePointer("p") }), 0, 0},
	} {
		before := holdings(t, s)
		var added limits.Usage
		write(t, s, func(w memory.Writer) (err error) {
			if err := c.write(w); err != nil {
				return err
			}
			_, added, err = w.Usage()
			return err
		})
		after := holdings(t, s)
		want(t, c.rule+": added is what there is more", added, limits.Usage{Records: after.Records - before.Records, Bytes: after.Bytes - before.Bytes})
		want(t, c.rule+": records", added.Records, c.records)
		switch c.bytes {
		case -1:
			want(t, c.rule+": bytes are more", added.Bytes > 0, true)
			larger += added.Bytes
		case -2:
			want(t, c.rule+": bytes are less", added.Bytes < 0, true)
			smaller += added.Bytes
		default:
			want(t, c.rule+": bytes", added.Bytes, c.bytes)
		}
	}
	if larger+smaller <= 0 {
		t.Error("what was taken away was larger than what was put")
	}

	t.Run("what is undone is not counted", func(t *testing.T) {
		before := holdings(t, s)
		refused := errors.New("no")
		if err := s.Write(ctx, ns, func(w memory.Writer) error {
			return errors.Join(w.Define(belief.Predicate{Name: "other"}), refused)
		}); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		want(t, "held", holdings(t, s), before)
	})
	t.Run("old sessions that are forgotten are no longer counted", func(t *testing.T) {
		before := holdings(t, s)
		for i := range 40 {
			write(t, s, func(w memory.Writer) error {
				return w.PutSession("run", agent.Session{Owner: agent.Owner{Pod: fmt.Sprintf("pod-%02d", i)}, Rank: int64(i + 2), Epoch: 9})
			})
		}
		grown := holdings(t, s).Records - before.Records
		want(t, "sessions are bounded", grown < 40 && grown > 20, true)
	})
	t.Run("an import counts as the writes did", func(t *testing.T) {
		from, to := fresh(t, open), fresh(t, open)
		fill(t, from, ns, "secret")
		if _, err := memory.Import(ctx, to, ns, strings.NewReader(exported(t, from, ns))); err != nil {
			t.Fatal(err)
		}
		session := limits.Usage{Records: 1, Bytes: int64(len("run"))} // it is not part of an export
		was := holdings(t, from)
		want(t, "held", holdings(t, to), limits.Usage{Records: was.Records - session.Records, Bytes: was.Bytes - session.Bytes})
	})
	t.Run("nothing is counted of what was erased", func(t *testing.T) {
		if err := s.Erase(ctx, ns); err != nil {
			t.Fatal(err)
		}
		want(t, "held", holdings(t, s), limits.Usage{})
	})
	t.Run("many writes at once", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				err := s.Write(ctx, ns, func(w memory.Writer) error { return w.Define(belief.Predicate{Name: fmt.Sprintf("p%02d", i)}) })
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want(t, "held", holdings(t, s), limits.Usage{Records: 16, Bytes: 48})
	})
}

// Recounted fills two namespaces, has the store forget what they hold and count it again, and wants the same.
func Recounted(t *testing.T, s memory.Store, recount func(*testing.T)) {
	t.Helper()
	fill(t, s, ns, "secret")
	fill(t, s, "tenant:other", "another secret")
	before := holdings(t, s)
	recount(t)
	want(t, "held", holdings(t, s), before)
}
