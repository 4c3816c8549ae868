package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/belief"
)

// spread is a model of 768 numbers, all of which are a matter of chance.
type spread struct{ *rand.Rand }

func (spread) Model() string { return "spread" }

func (s spread) vector() []float32 {
	const size, length = 768, 27.7 // of so many numbers, near enough
	v := make([]float32, size)
	for i := range v {
		v[i] = float32(s.NormFloat64() / length)
	}
	return v
}

// processorTime is what this process has used, which does not depend on what else the machine does.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRecallByMeaning compares a question with as many vectors as are ever compared, beside the same by words alone.
func BenchmarkRecallByMeaning(b *testing.B) {
	r := newRig(&testing.T{}, belief.Open())
	b.Cleanup(func() { _ = r.store.Close() })
	model := spread{rand.New(rand.NewPCG(1, 2))}
	const beliefs = 10_000
	err := r.store.Write(ctx, r.caller.Namespace, func(w memory.Writer) error {
		for i := range beliefs {
			e := []belief.Event{{ID: fmt.Sprint("m-", i), Subject: "user", Predicate: "did", Value: belief.Text(fmt.Sprint("thing ", i)), ObservedAt: day(i % 90), Confidence: 1}}
			if err := w.Append(e); err != nil {
				return err
			}
			many := func(name string) belief.Predicate {
				return belief.Predicate{Name: name, Cardinality: belief.Multi}
			}
			if err := w.PutBeliefs(belief.Fold(many, e).All()); err != nil {
				return err
			}
			if err := w.PutVectors(model.Model(), []memory.Vector{{Seq: e[0].Seq, Numbers: model.vector()}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, meaning := range map[string]*memory.Meaning{"words": nil, "words and meaning": {Embedder: model, Similarity: 0.05, Timeout: time.Second}} {
		b.Run(name, func(b *testing.B) {
			s := memory.NewService(r.store, memory.Options{Vocabulary: &r.vocab, Now: r.now, Meaning: meaning})
			before := processorTime(b)
			for b.Loop() {
				if _, err := s.Recall(ctx, r.caller, memory.RecallArgs{Query: "4711"}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

func (s spread) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = s.vector()
	}
	return out, nil
}
