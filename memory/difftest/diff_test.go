package difftest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

var (
	steps = flag.Int("steps", 400, "how many operations to compare, audits not counted")
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
	parted     int
}

func TestAnswersAreThoseOfTheReference(t *testing.T) {
	p := &peer{}
	r := &run{T: t, reference: p, ours: map[string]server{}}
	lite, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := pgstore.Open(context.Background(), pgtest.Start(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for engine, store := range map[string]memory.Store{"SQLite": lite, "PostgreSQL": postgres} {
		t.Cleanup(func() { _ = store.Close() })
		r.ours[engine] = newOwn(store)
	}
	sequences := (*steps + perSequence - 1) / perSequence
	diverged := 0
	for i := *from; i < sequences; i++ {
		if (i-*from)%perPeer == 0 {
			t.Logf("sequence %d of %d", i, sequences)
			if i > *from {
				p.stop()
			}
			p.start(t, "-agent=false")
		}
		g := generator{rand.New(rand.NewPCG(*seed, uint64(i)))}
		var sequence []step
		for range perSequence {
			sequence = append(sequence, g.next())
		}
		if d := r.play(append(sequence, audit()...)); d != nil {
			t.Errorf("sequence %d of seed %d diverges. The shortest found that does:\n%s", i, *seed, r.shortest(d))
			if diverged++; diverged == maxDiverged {
				t.Fatal("that is enough")
			}
		}
	}
	t.Logf("%d answers of %d sequences compared; %d sequences ended early, where the two part on purpose", r.compared, sequences, r.parted)
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
	for i, s := range sequence {
		reference := r.reference.call(r.T, r.namespaces, s)
		a := shown(theirs.answer(s, reference))
		for engine, own := range r.ours {
			if ours[engine] == nil {
				ours[engine] = newNormal()
			}
			b := ours[engine].answer(s, own.call(r.T, r.namespaces, s))
			r.compared++
			switch compare(s, parsed(a), b) {
			case same:
			case parted:
				r.parted++
				return nil
			case differs:
				return &divergence{steps: sequence[:i+1], engine: engine, reference: parsed(a), ours: b}
			}
		}
	}
	return nil
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
