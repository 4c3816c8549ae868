package belief

import (
	"maps"
	"slices"
)

// Rules looks a predicate up. Events under a predicate that it does not know are folded as of a multi-valued one that
// excludes nothing, so that no value is lost.
type Rules func(name string) Predicate

// State is what is believed of one subject, under some of its predicates, after the events that were applied to it.
type State struct {
	rules Rules
	held  map[string]map[string]Belief // by predicate, then by the key of the value
}

// NewState begins with the beliefs that are held already, which may be none.
func NewState(rules Rules, held ...Belief) *State {
	s := &State{rules: rules, held: map[string]map[string]Belief{}}
	for _, b := range held {
		s.put(b)
	}
	return s
}

// Fold applies events, which are sorted by SortEvents, to an empty state.
func Fold(rules Rules, events []Event) *State {
	s := NewState(rules)
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

// Held returns the beliefs under a predicate in order of time.
func (s *State) Held(predicate string) []Belief {
	return slices.SortedFunc(maps.Values(s.held[predicate]), ByTime)
}

// Find returns the belief in v under a predicate.
func (s *State) Find(predicate string, v Value) (Belief, bool) {
	b, ok := s.held[predicate][v.Key()]
	return b, ok
}

// All returns every belief, predicates in alphabetical order.
func (s *State) All() []Belief {
	var out []Belief //nolint:prealloc // how many there are is known only at the end
	for _, p := range slices.Sorted(maps.Keys(s.held)) {
		out = append(out, s.Held(p)...)
	}
	return out
}

// Change is what one event did: the beliefs that it ended, its own pair's first, and the one that it began, if any.
type Change struct {
	Ended []Belief
	Began *Belief
}

// Apply folds one more event, which must not be older than those before it. A value that is stated while it is believed
// goes on being believed, and the later event stands for it.
func (s *State) Apply(e Event) Change {
	if e.Retraction {
		return Change{Ended: s.retract(e)}
	}
	old, restated := s.Find(e.Predicate, e.Value)
	excluded := s.Excluded(e.Predicate, e.Value)
	began := beliefOf(e)
	var ended []Belief
	if restated {
		began.Replaced = slices.Clone(old.Replaced)
	} else {
		ended = s.Superseded(e.Predicate, e.Value)
	}
	ended = append(ended, excluded...)
	for _, b := range ended {
		s.drop(b)
		if !s.rules(e.Predicate).Historical { // what happened goes on having happened; it replaces nothing
			began.Replaced = append(began.Replaced, b.Prior(e.Predicate))
		}
	}
	if restated {
		ended = append(ended, old)
	}
	for _, named := range e.Replaces { // what is excluded may be named, too
		if !slices.ContainsFunc(began.Replaced, func(p Prior) bool { return p.EventID == named.EventID }) {
			began.Replaced = append(began.Replaced, named)
		}
	}
	s.put(began)
	return Change{Ended: ended, Began: &began}
}

// Superseded lists the beliefs of the statement's own pair that stating v would end.
func (s *State) Superseded(predicate string, v Value) []Belief {
	if s.rules(predicate).Cardinality != Single {
		return nil
	}
	var out []Belief
	for _, b := range s.Held(predicate) {
		if b.Value.Key() != v.Key() {
			out = append(out, b)
		}
	}
	return out
}

// Excluded lists the beliefs under other predicates that stating v would end. What is historical stays: to own a thing
// again does not undo that it was once given away.
func (s *State) Excluded(predicate string, v Value) []Belief {
	var out []Belief
	for _, other := range s.rules(predicate).Excludes {
		if s.rules(other).Historical {
			continue
		}
		if b, ok := s.Find(other, v); ok {
			out = append(out, b)
		}
	}
	return out
}

func (s *State) retract(e Event) []Belief {
	var ended []Belief
	if e.Value.IsZero() {
		ended = s.Held(e.Predicate)
	} else if b, ok := s.Find(e.Predicate, e.Value); ok {
		ended = []Belief{b}
	}
	for _, b := range ended {
		s.drop(b)
	}
	return ended
}

func (s *State) put(b Belief) {
	if s.held[b.Predicate] == nil {
		s.held[b.Predicate] = map[string]Belief{}
	}
	s.held[b.Predicate][b.Value.Key()] = b
}

func (s *State) drop(b Belief) { delete(s.held[b.Predicate], b.Value.Key()) }
