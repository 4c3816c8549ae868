package storetest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sallyport/memory"
	"sallyport/memory/agent"
	"sallyport/memory/belief"
)

// fill writes something of everything to a namespace: secret is in each text.
func fill(t *testing.T, s memory.Store, namespace, secret string) {
	t.Helper()
	err := s.Write(ctx, namespace, func(w memory.Writer) error {
		if err := w.Define(belief.Predicate{Name: "pet", Cardinality: belief.Single, ValueType: belief.String, Description: secret, DefinedAt: day(1)}); err != nil {
			return err
		}
		err := put(w, statement("m-1", secret+"\x00\x01", "pet", secret+" cat\x00", day(1)), statement("m-2", "s", belief.Note, secret+" note", day(2)))
		if err != nil {
			return err
		}
		if err := w.PutLease("run", agent.Lease{Epoch: 7, Held: true, Holder: secret}); err != nil {
			return err
		}
		if err := w.PutSession("run", agent.Session{Resumed: true, Epoch: 7, Rank: 1, Holder: secret}); err != nil {
			return err
		}
		a, err := w.Fenced("run", 7)
		if err != nil {
			return err
		}
		return errors.Join(
			a.PutState(agent.State{Goal: secret, Version: 1, UpdatedAt: day(1)}),
			a.PutState(agent.State{Goal: secret + " again", Version: 2, UpdatedAt: day(2)}),
			a.PutTurn(agent.Turn{Seq: 1, Role: "user", Content: secret, At: day(1)}),
			a.PutTurn(agent.Turn{Seq: 2, Role: "user", Content: secret, At: day(1)}),
			a.PutOutput(agent.Output{Ref: "b", Summary: secret, Tokens: 3, At: day(1)}, secret+" whole\x00"),
			a.PutOutput(agent.Output{Ref: "a", Tokens: 3, At: day(2)}, secret),
			a.PutPointer(agent.Pointer{Name: "p", Type: "object", Fields: map[string]string{"uri": secret}, At: day(1)}),
			a.PutAction(agent.Action{Seq: 1, Tool: "t", Class: agent.Pure, Args: secret, Status: agent.Done, StartedAt: day(1), EndedAt: new(day(2))}),
			a.PutAction(agent.Action{Seq: 2, Tool: "t", Class: agent.Pure, Status: agent.Started, StartedAt: day(1)}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Fill writes something to every table that a namespace can have rows in.
func Fill(t *testing.T, s memory.Store, namespace, secret string) {
	t.Helper()
	fill(t, s, namespace, secret)
	err := s.Write(ctx, namespace, func(w memory.Writer) error {
		missing, err := w.WithoutVector("model", 1, 1)
		if err != nil {
			return err
		}
		return w.PutVectors("model", []memory.Vector{{Seq: missing[0], Numbers: []float32{1}}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func exported(t *testing.T, s memory.Store, namespace string) string {
	t.Helper()
	var b bytes.Buffer
	if err := memory.Export(ctx, s, namespace, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func transfer(t *testing.T, open Open) {
	from, to := fresh(t, open), fresh(t, open)
	fill(t, from, ns, "secret")
	all := exported(t, from, ns)
	got, err := memory.Import(ctx, to, "elsewhere", strings.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "what was read", got, memory.Imported{Events: 2, Agents: 1})
	// The lease was given back, which is two more epochs; nothing else differs.
	want(t, "exported again", exported(t, to, "elsewhere"), strings.Replace(all, `"epoch":7`, `"epoch":9`, 1))
	for _, q := range []memory.Filter{{}, {Search: &memory.Search{Words: []string{"cats"}, Select: true}}, {Subject: "s"}} {
		var before, after string
		read(t, from, func(r memory.Reader) error {
			found, err := r.Beliefs(q)
			before = values(found)
			return err
		})
		err := to.Read(ctx, "elsewhere", func(r memory.Reader) error {
			found, err := r.Beliefs(q)
			after = values(found)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if want(t, "beliefs", after, before); before == "" {
			t.Errorf("%+v finds nothing", q)
		}
	}
	if _, err := memory.Import(ctx, to, "elsewhere", strings.NewReader(all)); !errors.Is(err, memory.ErrNotEmpty) {
		t.Errorf("a second import: %v", err)
	}
	if _, err := memory.Import(ctx, to, "half", strings.NewReader(all+"{\"bogus\":1}\n")); err == nil {
		t.Error("a line that is none was taken")
	}
	want(t, "of an import that failed there is", strings.Count(exported(t, to, "half"), "\n"), 1)
}

func erasing(t *testing.T, open Open) {
	s := fresh(t, open)
	const other = "tenant:other"
	fill(t, s, ns, "secret")
	fill(t, s, other, "public")
	kept := exported(t, s, other)
	for range 2 { // the second time there is nothing to erase
		if err := s.Erase(ctx, ns); err != nil {
			t.Fatal(err)
		}
		want(t, "left of it", strings.Count(exported(t, s, ns), "\n"), 1)
		want(t, "left of another namespace", exported(t, s, other), kept)
	}
	find := func(namespace, word string) (n int) {
		err := s.Read(ctx, namespace, func(r memory.Reader) error {
			found, err := r.Beliefs(memory.Filter{Search: &memory.Search{Words: []string{word}, Select: true}})
			n = len(found)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	want(t, "another is still found by its words", find(other, "cats"), 1)
	fill(t, s, ns, "again")
	want(t, "and so is what is written anew", find(ns, "cats"), 1)
	want(t, "but not what was erased", find(ns, "secret"), 0)
}
