package difftest

import (
	"flag"
	"math/rand/v2"

	"sallyport/memory"
	"sallyport/memory/api"
	"sallyport/memory/belief"
)

// kind is a way to use the Memory API: how both servers are started for it, and what is asked of them.
type kind struct {
	name  string
	flags []string // of the reference
	own   func(memory.Store) *own
	next  func(*generator) step
	audit func(*generator) []step // asks for everything that a sequence can have left
}

var (
	open = &kind{
		name: "open", flags: []string{"-typed", "-open", "-agent=false"}, own: newOwn, next: (*generator).next, audit: (*generator).audit,
	}
	closed = &kind{
		name: "closed", flags: []string{"-typed", "-agent=false"},
		own:  func(store memory.Store) *own { return serving(store, belief.Closed(), api.Typed(false)) },
		next: (*generator).next, audit: (*generator).audit,
	}
	text = &kind{
		name: "text", flags: []string{"-text", "-agent=false"},
		own:  func(store memory.Store) *own { return serving(store, belief.Open(), api.Text()) },
		next: (*generator).nextText, audit: (*generator).auditText,
	}
	agents = &kind{
		name: "agents", flags: []string{"-typed", "-open"}, own: newOwn, next: (*generator).nextOfAgent, audit: (*generator).auditAgents,
	}
)

// turns is how the kinds take turns, one run of the reference each.
var turns = []*kind{open, agents, closed, text, open, agents}

var only = flag.String("only", "", "the kind of sequences to run: open, closed, text or agents; all of them unless given")

// kindOf is the kind of a sequence.
func kindOf(sequence int) *kind {
	for _, k := range turns {
		if k.name == *only {
			return k
		}
	}
	return turns[sequence/perPeer%len(turns)]
}

// sequenceOf makes a sequence, which is the same whenever it is asked for.
func sequenceOf(seed uint64, number int) []step {
	k := kindOf(number)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(number))), open: k != closed, deferred: map[string]bool{}}
	g.pods = pick(g, [][]string{{""}, {""}, {"pod-a"}, {"pod-a", "pod-b"}})
	var out []step
	for range perSequence {
		out = append(out, k.next(g))
	}
	return append(out, k.audit(g)...)
}
