package difftest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

var (
	steps = flag.Int("steps", 0, "how many operations to compare, audits not counted; a few of each kind unless given")
	seed  = flag.Uint64("seed", 1, "what the operations are generated from")
	from  = flag.Int("from", 0, "the sequence to begin with")
)

// perSequence is how many operations a namespace gets: enough for them to touch each other, and few for the reference,
// which grows slower with each.
const perSequence = 40

// perPeer is how many sequences the reference gets before it is started anew: it slows down with every namespace.
const perPeer = 15

// maxDiverged ends a run: what is wrong once is wrong often.
const maxDiverged = 10

// run compares the two servers.
type run struct {
	*testing.T
	reference  server
	ours       map[string]server // by engine
	namespaces int               // used so far
	compared   int
	parted     map[string]int // sequences that ended early, by why
}

func TestAnswersAreThoseOfTheReference(t *testing.T) {
	p := &peer{}
	r := &run{T: t, reference: p, ours: map[string]server{}, parted: map[string]int{}}
	stores := r.stores()
	sequences := numbers()
	diverged := 0
	for at, i := range sequences {
		if at == 0 || i/perPeer != sequences[at-1]/perPeer {
			k := kindOf(i)
			t.Logf("sequence %d up to %d, kind %s", i, sequences[len(sequences)-1], k.name)
			if at > 0 {
				p.stop()
			}
			p.start(t, k.flags...)
			for engine, store := range stores {
				r.ours[engine] = k.own(store)
			}
		}
		if d := r.play(sequenceOf(*seed, i)); d != nil {
			t.Errorf("sequence %d of seed %d diverges. The shortest found that does:\n%s", i, *seed, r.shortest(d))
			if diverged++; diverged == maxDiverged {
				t.Fatal("that is enough")
			}
		}
	}
	t.Logf("%d answers of %d sequences compared", r.compared, len(sequences))
	for why, n := range r.parted {
		t.Logf("%d sequences ended early: %s", n, why)
	}
}

// numbers are those of the sequences to run: as many as the steps take, or the first ones of each kind.
func numbers() (out []int) {
	if *steps > 0 {
		for i := *from; i*perSequence < *steps; i++ {
			out = append(out, i)
		}
		return out
	}
	const few = 3
	var begun []*kind
	for at, k := range turns {
		if slices.Contains(begun, k) {
			continue
		}
		begun = append(begun, k)
		for i := range few {
			out = append(out, at*perPeer+i)
		}
	}
	return out
}

func (r *run) stores() map[string]memory.Store {
	r.Helper()
	lite, err := sqlitestore.Open(context.Background(), filepath.Join(r.TempDir(), "memory.db"))
	if err != nil {
		r.Fatal(err)
	}
	postgres, err := pgstore.Open(context.Background(), pgtest.Start(r.T).Database(r.T))
	if err != nil {
		r.Fatal(err)
	}
	stores := map[string]memory.Store{"SQLite": lite, "PostgreSQL": postgres}
	for _, store := range stores {
		r.Cleanup(func() { _ = store.Close() })
	}
	return stores
}

// divergence is a sequence whose last answers differ.
type divergence struct {
	steps           []step
	engine          string
	reference, ours any
}

func (d *divergence) String() string {
	var b strings.Builder
	for _, s := range d.steps {
		fmt.Fprintln(&b, s)
	}
	where, reference, ours := difference("", d.reference, d.ours)
	fmt.Fprintf(&b, "On %s they differ in %s\nreference: %s\nours:      %s\n", d.engine, cmp.Or(where, "everything"), shown(reference), shown(ours))
	return b.String()
}

// play sends a sequence to both servers, in a namespace of its own, up to the first divergence; nil if there is none.
func (r *run) play(sequence []step) *divergence {
	r.Helper()
	if r.namespaces++; r.namespaces >= maxNamespaces {
		r.Fatal("there are no namespaces left")
	}
	theirs, ours := newNormal(), map[string]*normal{}
	for engine := range r.ours {
		ours[engine] = newNormal()
	}
	ahead := time.Now().Add(shortlyAhead)
	for i, s := range sequence {
		s = s.dated(ahead)
		reference := shown(theirs.answer(s, r.reference.call(r.T, r.namespaces, s)))
		for engine, own := range r.ours {
			c := comparison{step: s, past: sequence[:i], reference: parsed(reference), ours: ours[engine].answer(s, own.call(r.T, r.namespaces, s))}
			c.askReference = func(q step) any { return newNormal().answer(q, r.reference.call(r.T, r.namespaces, q)) }
			c.askOurs = func(q step) any { return newNormal().answer(q, own.call(r.T, r.namespaces, q)) }
			r.compared++
			verdict, why := c.judge()
			if time.Now().After(ahead.Add(-aSecond)) && states(soon, sequence[:i+1]) {
				verdict, why = parted, "it took so long that what was dated ahead has come"
			}
			switch verdict {
			case same:
			case parted:
				r.parted[why]++
				return nil
			case differs:
				return &divergence{steps: sequence[:i+1], engine: engine, reference: c.reference, ours: c.ours}
			}
		}
	}
	return nil
}

// Statements are dated so far ahead of the clock that a sequence is over before their time has come.
const (
	shortlyAhead = 50 * time.Second
	aSecond      = time.Second
)

// dated puts an instant in the place of the word soon.
func (s step) dated(ahead time.Time) step {
	s.Body = bytes.ReplaceAll(s.Body, []byte(`"`+soon+`"`), []byte(`"`+ahead.UTC().Format(time.RFC3339)+`"`))
	return s
}

// searching bounds how long a shorter sequence is looked for.
const searching = 40 * time.Second

// shortest takes away as many steps as it can, big pieces first, as long as the last step's answers still differ.
func (r *run) shortest(d *divergence) *divergence {
	end := time.Now().Add(searching)
	for size := len(d.steps) / 2; size > 0; {
		shorter := false
		for at := 0; at+size < len(d.steps) && time.Now().Before(end); {
			rest := append(append([]step{}, d.steps[:at]...), d.steps[at+size:]...)
			if found := r.play(rest); found != nil {
				d, shorter = found, true
				continue
			}
			at += size
		}
		if !shorter || size > len(d.steps)/2 {
			size /= 2
		}
	}
	return d
}
