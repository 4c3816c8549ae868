package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"sallyport/memory"
	"sallyport/memory/belief"
)

func vectors(t *testing.T, open Open) {
	s := fresh(t, open)
	const other, model = "tenant:other", "model-a"
	all := []belief.Event{
		statement("m-1", "s", "did", "A", day(2)),
		statement("m-2", "s", "did", "B", day(1)),
		statement("m-3", "t", "role", "C", day(3)),
		belief.Retraction("t", "nothing", belief.Value{}, day(4), "m-4"),
	}
	write(t, s, func(w memory.Writer) error { return put(w, all[:3]...) })
	write(t, s, func(w memory.Writer) error { return w.Append(all[3:]) })
	var seqs []int64
	read(t, s, func(r memory.Reader) error {
		events, err := r.Events(memory.EventFilter{})
		for _, e := range events {
			seqs = append(seqs, e.Seq) // B A C and the retraction
		}
		return err
	})
	b, a, c := seqs[0], seqs[1], seqs[2]

	without := func(rule, model string, size, limit int, wanted ...int64) {
		t.Helper()
		read(t, s, func(r memory.Reader) error {
			got, err := r.WithoutVector(model, size, limit)
			want(t, rule, fmt.Sprint(got), fmt.Sprint(wanted))
			return err
		})
	}
	found := func(rule string, f memory.VectorFilter, wanted ...memory.Vector) {
		t.Helper()
		read(t, s, func(r memory.Reader) error {
			var got []memory.Vector
			err := r.Vectors(f, func(v memory.Vector) {
				got = append(got, memory.Vector{Seq: v.Seq, Numbers: slices.Clone(v.Numbers)})
			})
			slices.SortFunc(got, func(a, b memory.Vector) int { return cmp.Compare(b.Seq, a.Seq) })
			want(t, rule, fmt.Sprint(got), fmt.Sprint(wanted))
			return err
		})
	}
	without("every statement lacks one, the latest first; retractions need none", model, 0, 9, c, b, a)
	without("no more than asked for", model, 0, 2, c, b)
	va, vb, vc := memory.Vector{Seq: a, Numbers: []float32{1, 0}}, memory.Vector{Seq: b, Numbers: []float32{0.6, -0.8}}, memory.Vector{Seq: c, Numbers: []float32{0, 1}}
	write(t, s, func(w memory.Writer) error { return w.PutVectors(model, []memory.Vector{va, vb, vc}) })
	without("none lacks one", model, 2, 9)
	without("those of another model", "model-b", 0, 9, c, b, a)
	without("those of another size", model, 3, 9, c, b, a)

	f := memory.VectorFilter{Model: model, Size: 2}
	found("all", f, vc, vb, va)
	found("of the latest statement", memory.VectorFilter{Model: model, Size: 2, Limit: 1}, vc)
	found("of another model", memory.VectorFilter{Model: "model-b", Size: 2})
	found("of another size", memory.VectorFilter{Model: model, Size: 3})
	found("of what is believed of a subject", memory.VectorFilter{Model: model, Size: 2, Believed: &memory.Filter{Subject: "s"}}, vb, va)
	write(t, s, func(w memory.Writer) error {
		held, err := w.Beliefs(memory.Filter{Subject: "s", Predicate: "did", Limit: 1})
		if err != nil {
			return err
		}
		want(t, "dropped", values(held), "B")
		return w.DropBeliefs(held)
	})
	found("not of what is believed no more", memory.VectorFilter{Model: model, Size: 2, Believed: &memory.Filter{}}, vc, va)
	found("unless every statement is asked for", f, vc, vb, va)

	read(t, s, func(r memory.Reader) error {
		events, err := r.Statements([]int64{a, b, seqs[3] + 99})
		want(t, "statements that there are", len(events), 2)
		if err != nil {
			return err
		}
		held, err := r.BeliefsOf([]int64{a, b})
		want(t, "beliefs that rest on them", values(held), "A")
		return err
	})
	write(t, s, func(w memory.Writer) error {
		return w.PutVectors("model-b", []memory.Vector{{Seq: a, Numbers: []float32{1}}})
	})
	without("one that has another model's now", model, 2, 9, a)

	t.Run("of another namespace", func(t *testing.T) {
		err := s.Write(ctx, other, func(w memory.Writer) error {
			if err := w.Vectors(f, func(v memory.Vector) { t.Errorf("sees %v", v) }); err != nil {
				return err
			}
			missing, err := w.WithoutVector(model, 0, 9)
			want(t, "missing", len(missing), 0)
			if err != nil {
				return err
			}
			events, err := w.Statements([]int64{a, b, c})
			want(t, "statements", len(events), 0)
			if err != nil {
				return err
			}
			held, err := w.BeliefsOf([]int64{a, b, c})
			want(t, "beliefs", len(held), 0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		// Whether the store refuses or ignores it, what is there stays as it is.
		_ = s.Write(ctx, other, func(w memory.Writer) error {
			return w.PutVectors(model, []memory.Vector{{Seq: c, Numbers: []float32{1, 0}}})
		})
		found("what another namespace could not overwrite", memory.VectorFilter{Model: model, Size: 2, Limit: 1}, vc)
	})
	t.Run("names of namespaces", func(t *testing.T) {
		for _, c := range []struct {
			after string
			limit int
			want  string
		}{{"", 9, "[tenant:agent tenant:other]"}, {"", 1, "[tenant:agent]"}, {ns, 9, "[tenant:other]"}, {other, 9, "[]"}} {
			names, err := s.Namespaces(ctx, c.after, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "after "+c.after, fmt.Sprint(names), c.want)
		}
	})
	t.Run("erased with the rest", func(t *testing.T) {
		if err := s.Erase(ctx, ns); err != nil {
			t.Fatal(err)
		}
		found("nothing", memory.VectorFilter{Model: model, Size: 2})
		names, err := s.Namespaces(ctx, "", 9)
		want(t, "names", fmt.Sprint(names), "[tenant:other]")
		if err != nil {
			t.Fatal(err)
		}
	})
}
