package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/agent"
)

const worker = "worker"

// held gives the worker's lease out under an epoch.
func held(t *testing.T, s memory.Store, epoch int64) agent.Lease {
	t.Helper()
	l := agent.Lease{Epoch: epoch, Held: true, Owner: agent.Owner{Pod: "p", Connection: "c"}, Holder: "h", TTL: 90 * time.Second, Expires: day(1)}
	write(t, s, func(w memory.Writer) error { return w.PutLease(worker, l) })
	return l
}

// fenced writes under an epoch.
func fenced(s memory.Store, epoch int64, fn func(memory.AgentWriter) error) error {
	return s.Write(ctx, ns, func(w memory.Writer) error {
		a, err := w.Fenced(worker, epoch)
		if err != nil {
			return err
		}
		return fn(a)
	})
}

func fencing(t *testing.T, open Open) {
	s := fresh(t, open)
	turn := func(a memory.AgentWriter) error { return a.PutTurn(agent.Turn{Seq: 1, Role: "user", At: day(1)}) }
	if err := fenced(s, 0, turn); !errors.Is(err, memory.ErrStaleEpoch) {
		t.Errorf("an agent that nobody holds was written to: %v", err)
	}
	l := held(t, s, 3)
	for _, epoch := range []int64{0, 2, 4} {
		if err := fenced(s, epoch, turn); !errors.Is(err, memory.ErrStaleEpoch) {
			t.Errorf("a write under epoch %d passed at 3: %v", epoch, err)
		}
	}
	if err := fenced(s, 3, turn); err != nil {
		t.Errorf("a write under the epoch: %v", err)
	}
	l.Held = false
	write(t, s, func(w memory.Writer) error { return w.PutLease(worker, l) })
	if err := fenced(s, 3, turn); !errors.Is(err, memory.ErrStaleEpoch) {
		t.Errorf("a write under a lease that was released passed: %v", err)
	}
	read(t, s, func(r memory.Reader) error {
		got, err := r.Agent(worker)
		want(t, "lease as it was written, turns counted", fmt.Sprint(got), fmt.Sprint(agent.Record{Agent: worker, TurnSeq: 1, Lease: l}))
		return err
	})
}

func extending(t *testing.T, open Open) {
	s := fresh(t, open)
	held(t, s, 3)
	expires := func() time.Time {
		var at time.Time
		read(t, s, func(r memory.Reader) error {
			got, err := r.Agent(worker)
			at = got.Lease.Expires
			return err
		})
		return at
	}
	extend := func(namespace string, epoch int64, to time.Time) {
		t.Helper()
		if err := s.Extend(ctx, []memory.Extension{{Namespace: namespace, Agent: worker, Epoch: epoch, Expires: to}}); err != nil {
			t.Fatal(err)
		}
	}
	extend(ns, 2, day(5))
	extend("tenant:other", 3, day(5))
	want(t, "another epoch's or namespace's lease", expires(), day(1))
	extend(ns, 3, day(5))
	want(t, "extended", expires(), day(5))
	extend(ns, 3, day(2))
	want(t, "handed over", expires(), day(2))
	if err := fenced(s, 3, func(a memory.AgentWriter) error { return a.Extend(day(7)) }); err != nil {
		t.Fatal(err)
	}
	want(t, "extended by a write", expires(), day(7))
	if err := s.Extend(ctx, nil); err != nil {
		t.Error(err)
	}
}

func sessions(t *testing.T, open Open) {
	s := fresh(t, open)
	x := agent.Session{
		Owner: agent.Owner{Pod: "p", Connection: "c"}, Resumed: true, Epoch: 4, Rank: 1, Holder: "h", TTL: 7 * time.Second, TokenBudget: 500, Threshold: -1,
	}
	rank := func() (n int64) {
		read(t, s, func(r memory.Reader) (err error) {
			n, err = r.NextRank(worker)
			return err
		})
		return n
	}
	want(t, "the first rank", rank(), 1)
	write(t, s, func(w memory.Writer) error { return w.PutSession(worker, x) })
	want(t, "the next rank", rank(), 2)
	read(t, s, func(r memory.Reader) error {
		got, err := r.Session(worker, x.Owner)
		if err != nil {
			return err
		}
		want(t, "a session as it was written", fmt.Sprint(*got), fmt.Sprint(x))
		none, err := r.Session(worker, agent.Owner{Pod: "p"})
		want(t, "another connection's session", none == nil, true)
		return err
	})
	t.Run("old sessions are forgotten, but not the holder's", func(t *testing.T) {
		held(t, s, 4)
		const many = 200
		for i := range many {
			write(t, s, func(w memory.Writer) error {
				return w.PutSession(worker, agent.Session{Owner: agent.Owner{Pod: fmt.Sprint("other", i)}, Rank: int64(i + 2)})
			})
		}
		read(t, s, func(r memory.Reader) error {
			got, err := r.Session(worker, x.Owner)
			want(t, "the holder is known", got != nil, true)
			if err != nil {
				return err
			}
			old, err := r.Session(worker, agent.Owner{Pod: "other0"})
			want(t, "an old one is forgotten", old == nil, true)
			if err != nil {
				return err
			}
			latest, err := r.Session(worker, agent.Owner{Pod: fmt.Sprint("other", many-1)})
			want(t, "the latest is known", latest != nil, true)
			return err
		})
	})
}

func records(t *testing.T, open Open) {
	s := fresh(t, open)
	held(t, s, 1)
	ended := day(2)
	action := agent.Action{Seq: 1, Tool: "t", Class: agent.Pure, Args: "a", Key: "k", Status: agent.Started, Epoch: 1, StartedAt: day(1)}
	done := action
	done.Status, done.EndedAt = agent.Done, &ended
	other := agent.Action{Seq: 2, Tool: "u", Class: agent.External, Status: agent.Unknown, StartedAt: day(1)}
	err := fenced(s, 1, func(a memory.AgentWriter) error {
		n1, err1 := a.NextOutput()
		n2, err2 := a.NextOutput()
		want(t, "output numbers differ", n1 != n2, true)
		return errors.Join(err1, err2,
			a.PutState(agent.State{Version: 1, Goal: "g"}), a.PutState(agent.State{Version: 2, Goal: "h", Plan: []string{"p"}, UpdatedAt: day(1)}),
			a.PutTurn(agent.Turn{Seq: 1, Role: "user", Content: "one"}), a.PutTurn(agent.Turn{Seq: 2, Role: "tool", Content: "two", At: day(1)}),
			a.PutOutput(agent.Output{Ref: "r1", Tokens: 1, At: day(1)}, "old"), a.PutOutput(agent.Output{Ref: "r2", Tool: "t", Summary: "s", Tokens: 2, At: day(1)}, "two"),
			a.PutOutput(agent.Output{Ref: "r1", Tokens: 3, At: day(2)}, "new"),
			a.PutPointer(agent.Pointer{Name: "b", Type: "object", Fields: map[string]string{"uri": "u"}, At: day(1)}),
			a.PutPointer(agent.Pointer{Name: "a", Type: "object", Fields: map[string]string{"uri": "v"}}), a.PutPointer(agent.Pointer{Name: "c"}), a.RemovePointer("c"), a.RemovePointer("d"),
			a.PutAction(action), a.PutAction(other), a.PutAction(done),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	read(t, s, func(r memory.Reader) error {
		states, err1 := r.States(worker, 1)
		turns, err2 := r.Turns(worker, 5)
		outputs, err3 := r.Outputs(worker, 5)
		count, err4 := r.CountOutputs(worker)
		output, found, err5 := r.Output(worker, "r1")
		_, missing, err6 := r.Output(worker, "r9")
		pointers, err7 := r.Pointers(worker)
		opened, err8 := r.OpenActions(worker)
		closed, has, err9 := r.Action(worker, 1)
		record, err10 := r.Agent(worker)
		want(t, "the newest state", fmt.Sprint(states), fmt.Sprint([]agent.State{{Version: 2, Goal: "h", Plan: []string{"p"}, UpdatedAt: day(1)}}))
		want(t, "turns, newest first", fmt.Sprint(turns[0], len(turns)), fmt.Sprint(agent.Turn{Seq: 2, Role: "tool", Content: "two", At: day(1)}, 2))
		want(t, "outputs, newest first", fmt.Sprint(outputs), fmt.Sprint([]agent.Output{
			{Ref: "r1", Tokens: 3, At: day(2)}, {Ref: "r2", Tool: "t", Summary: "s", Tokens: 2, At: day(1)},
		}))
		want(t, "outputs counted", count, 2)
		want(t, "an output", fmt.Sprint(output, found, missing), fmt.Sprint(agent.Fetched{Ref: "r1", Content: "new", At: day(2)}, true, false))
		want(t, "pointers by name", fmt.Sprintf("%s %s %d", pointers[0].Name, pointers[1].Name, len(pointers)), "a b 2")
		want(t, "open actions", fmt.Sprint(opened), fmt.Sprint([]agent.Action{other}))
		want(t, "a closed action", fmt.Sprint(closed.Status, closed.EndedAt, has), fmt.Sprint(done.Status, done.EndedAt, true))
		want(t, "what is counted", fmt.Sprint(record.TurnSeq, record.ActionSeq), "2 2")
		none, err11 := r.Agent("nobody")
		want(t, "an agent that was never heard of", fmt.Sprint(none), fmt.Sprint(agent.Record{Agent: "nobody"}))
		return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11)
	})
}
