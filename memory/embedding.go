package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"sallyport/memory/belief"
)

// How statements get their vectors: a write says which statements are new, and one worker embeds them soon after, so that no
// write waits for a model. What it could not embed, what was written by another process, and what has vectors of another
// model is found by looking through the store: when the worker starts, when the service answers again, and now and then.
const (
	maxBacklog   = 10_000 // statements; of more, the worker looks through the store
	embedAtOnce  = 32     // texts in a request
	lookEvery    = 10 * time.Minute
	lookAtOnce   = 10_000 // statements of a namespace that are remembered as having no vector, and names that are read at once
	embedTimeout = 30 * time.Second
	firstWait    = time.Second // after a failure; then twice as long each time
	longestWait  = time.Minute
)

// backlog is which statements are new. It may be used by many goroutines.
type backlog struct {
	more chan struct{} // has room for one: that there is something

	mu   sync.Mutex
	seqs map[string][]int64 // by namespace
	size int
	look bool // there was more than fits
}

func newBacklog() *backlog { return &backlog{more: make(chan struct{}, 1), seqs: map[string][]int64{}} }

func (b *backlog) add(namespace string, seqs []int64) {
	if len(seqs) == 0 {
		return
	}
	b.mu.Lock()
	if b.size+len(seqs) > maxBacklog {
		b.look = true
	} else {
		b.seqs[namespace] = append(b.seqs[namespace], seqs...)
		b.size += len(seqs)
	}
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// take returns what there is, and whether the whole store has to be looked through.
func (b *backlog) take() (seqs map[string][]int64, look bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seqs, look = b.seqs, b.look
	b.seqs, b.size, b.look = map[string][]int64{}, 0, false
	return seqs, look
}

// noting is a Writer that notes which statements are appended.
type noting struct {
	Writer
	seqs []int64
}

// Append implements BeliefWriter.
func (n *noting) Append(events []belief.Event) error {
	err := n.Writer.Append(events)
	for _, e := range events {
		if !e.Retraction {
			n.seqs = append(n.seqs, e.Seq)
		}
	}
	return err
}

// embedding gives statements their vectors.
type embedding struct {
	*meaning
	store Store
	// refused are statements whose text the service does not take. They are tried again when the process starts anew.
	refused *lru.Cache[int64, struct{}]
}

// run embeds until ctx ends.
func (m *meaning) run(ctx context.Context, store Store) {
	refused, err := lru.New[int64, struct{}](lookAtOnce)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	e := &embedding{meaning: m, store: store, refused: refused}
	now := time.NewTicker(lookEvery)
	defer now.Stop()
	look := true
	wait := firstWait
	for ctx.Err() == nil {
		seqs, overflown := m.backlog.take()
		err := e.round(ctx, seqs, look || overflown)
		look = err != nil
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, longestWait)
			continue
		}
		wait = firstWait
		select {
		case <-ctx.Done():
		case <-m.backlog.more:
		case <-now.C:
			look = true
		}
	}
}

// round embeds the statements named, and if it is to look for more, those of all namespaces.
func (e *embedding) round(ctx context.Context, seqs map[string][]int64, look bool) error {
	for namespace, some := range seqs {
		if err := e.all(ctx, namespace, some); err != nil {
			return err
		}
	}
	if !look {
		return nil
	}
	for after := ""; ; {
		names, err := e.store.Namespaces(ctx, after, lookAtOnce)
		if err != nil {
			e.log.Warn("cannot look for statements that have no vector", "error", err)
			return err
		}
		for _, namespace := range names {
			if err := e.missing(ctx, namespace); err != nil {
				return err
			}
			after = namespace
		}
		if len(names) < lookAtOnce {
			return nil
		}
	}
}

// missing embeds the statements of a namespace that have no vector.
func (e *embedding) missing(ctx context.Context, namespace string) error {
	for {
		var seqs []int64
		err := e.store.Read(ctx, namespace, func(r Reader) (err error) {
			seqs, err = r.WithoutVector(e.Embedder.Model(), int(e.size.Load()), lookAtOnce)
			return err
		})
		if err != nil {
			e.log.Warn("cannot look for statements that have no vector", "error", err)
			return err
		}
		open := slices.DeleteFunc(slices.Clone(seqs), e.refused.Contains)
		if err := e.all(ctx, namespace, open); err != nil || len(open) == 0 || len(seqs) < lookAtOnce {
			return err
		}
	}
}

func (e *embedding) all(ctx context.Context, namespace string, seqs []int64) error {
	for some := range slices.Chunk(seqs, embedAtOnce) {
		if err := e.some(ctx, namespace, some); err != nil {
			return err
		}
	}
	return nil
}

// some embeds a few statements. If the service does not take them together, it is asked for each.
func (e *embedding) some(ctx context.Context, namespace string, seqs []int64) error {
	var statements []belief.Event
	err := e.store.Read(ctx, namespace, func(r Reader) (err error) {
		statements, err = r.Statements(seqs)
		return err
	})
	if err != nil {
		e.log.Warn("cannot read statements to embed", "error", err)
		return err
	}
	if len(statements) == 0 { // erased meanwhile
		return nil
	}
	texts := make([]string, len(statements))
	for i, s := range statements {
		texts[i] = belief.Belief{Subject: s.Subject, Predicate: s.Predicate, Value: s.Value}.Sentence()
	}
	within, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	vectors, err := e.embed(within, "statement", texts)
	switch {
	case err == nil:
		return e.keep(ctx, namespace, statements, vectors)
	case !refusedText(err):
		return err
	case len(statements) == 1:
		e.log.Warn("a statement cannot be found by its meaning: its text is not taken", "error", err)
		e.refused.Add(statements[0].Seq, struct{}{})
		return nil
	}
	for _, s := range statements {
		if err := e.some(ctx, namespace, []int64{s.Seq}); err != nil {
			return err
		}
	}
	return nil
}

// errGone undoes a write to a namespace that was erased while its statements were embedded: it must not come back.
var errGone = errors.New("the statements are gone")

func (e *embedding) keep(ctx context.Context, namespace string, statements []belief.Event, vectors [][]float32) error {
	err := e.store.Write(ctx, namespace, func(w Writer) error {
		seqs := make([]int64, len(statements))
		bySeq := make(map[int64][]float32, len(statements))
		for i, s := range statements {
			seqs[i], bySeq[s.Seq] = s.Seq, vectors[i]
		}
		still, err := w.Statements(seqs)
		if err != nil {
			return err
		}
		if len(still) == 0 {
			return errGone
		}
		out := make([]Vector, len(still))
		for i, s := range still {
			out[i] = Vector{Seq: s.Seq, Numbers: bySeq[s.Seq]}
		}
		return w.PutVectors(e.Embedder.Model(), out)
	})
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		e.log.Warn("cannot keep what statements mean", "error", err)
	}
	return err
}
