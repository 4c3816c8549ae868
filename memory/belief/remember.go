package belief

import (
	"encoding/json"
	"slices"
	"time"
)

// Ref names a belief of the statement's own subject, as the caller wrote it.
type Ref struct {
	Predicate string          `json:"predicate"`
	Value     json.RawMessage `json:"value"` // null when the caller gave none
}

// Statement is what a caller wants remembered, checked and with every default filled in.
type Statement struct {
	Subject    string
	Predicate  string
	Value      Value
	Kind       string
	Source     string
	Confidence float64
	At         time.Time
	Replaces   []Ref
	Evidence   string
	EvidenceID string
}

// Remembered is what a statement came to.
type Remembered struct {
	Stored     Belief
	Known      bool     // it was believed already; Events may still carry what it replaces
	Superseded []Belief // what it ended: its own pair's, then others
	Unreplaced []Ref    // what it should have replaced but nobody believed
	Events     []Event  // to be written, in this order
}

// Remember decides what a statement comes to when s is what is believed at its instant, and applies it to s. NewID makes
// the ids of the events. Canonical is the vocabulary's reading of predicate names.
func (s *State) Remember(st Statement, canonical func(string) (string, error), newID func() string) Remembered {
	withdrawn, unreplaced := s.withdrawals(st, canonical)
	old, known := s.Find(st.Predicate, st.Value)
	known = known && len(s.Excluded(st.Predicate, st.Value)) == 0
	if known && len(withdrawn) == 0 {
		return Remembered{Stored: old, Known: true, Unreplaced: unreplaced}
	}
	e := Event{
		ID: newID(), Kind: st.Kind, Subject: st.Subject, Predicate: st.Predicate, Value: st.Value, Confidence: st.Confidence,
		Source: st.Source, ObservedAt: st.At, Evidence: st.Evidence, EvidenceID: st.EvidenceID,
	}
	for _, b := range withdrawn {
		e.Replaces = append(e.Replaces, b.Prior(""))
	}
	out := Remembered{Stored: beliefOf(e), Known: known, Unreplaced: unreplaced, Events: []Event{e}}
	out.Stored.Replaced = e.Replaces
	for _, b := range s.Apply(e).Ended {
		if b.Predicate != st.Predicate || b.Value.Key() != st.Value.Key() {
			out.Superseded = append(out.Superseded, b)
		}
	}
	for _, b := range withdrawn {
		r := Retraction(st.Subject, b.Predicate, b.Value, st.At, newID())
		r.ReplacedBy, r.Source, r.Kind = e.ID, st.Source, b.Kind
		s.Apply(r)
		out.Events = append(out.Events, r)
		if !slices.ContainsFunc(out.Superseded, func(x Belief) bool { return x.EventID == b.EventID }) {
			out.Superseded = append(out.Superseded, b)
		}
	}
	return out
}

// withdrawals sorts what the statement names into what is believed and what is not. The old value of a single-valued pair
// is in neither list, since the statement ends it anyway, and so is the statement itself.
func (s *State) withdrawals(st Statement, canonical func(string) (string, error)) (believed []Belief, not []Ref) {
	seen := map[string]bool{}
	for _, ref := range st.Replaces {
		name, nameErr := canonical(ref.Predicate)
		v, valueErr := ParseValue(ref.Value)
		if nameErr != nil || valueErr != nil || v.Type() != s.rules(name).ValueType {
			not = append(not, ref) // there can be no such belief
			continue
		}
		if name == Note || s.rules(name).Historical { // what was said or happened stays so; only forget takes it back
			not = append(not, ref)
			continue
		}
		id := name + "\x00" + v.Key()
		if seen[id] {
			continue
		}
		seen[id] = true
		b, held := s.Find(name, v)
		switch {
		case name == st.Predicate && v.Key() == st.Value.Key():
		case name == st.Predicate && s.rules(name).Cardinality == Single: // is ended by the statement in any case
		case !held:
			not = append(not, ref)
		default:
			believed = append(believed, b)
		}
	}
	return believed, not
}

// Retraction returns the event that ends one value of a pair, or all of them when v is no value.
func Retraction(subject, predicate string, v Value, at time.Time, id string) Event {
	return Event{
		ID: id, Kind: Fact, Subject: subject, Predicate: predicate, Value: v, Confidence: 1, Source: UserStated,
		ObservedAt: at, Retraction: true,
	}
}

// Changed compares the beliefs that a state began with to those that it holds now.
func (s *State) Changed(before []Belief) (dropped, put []Belief) {
	had := make(map[string]bool, len(before))
	for _, b := range before {
		now, ok := s.Find(b.Predicate, b.Value)
		if ok && now.EventID == b.EventID && len(now.Replaced) == len(b.Replaced) {
			had[b.EventID] = true
			continue
		}
		dropped = append(dropped, b)
	}
	for _, b := range s.All() {
		if !had[b.EventID] {
			put = append(put, b)
		}
	}
	return dropped, put
}
