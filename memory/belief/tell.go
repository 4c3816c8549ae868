package belief

import (
	"slices"
	"strings"
	"time"
)

// Sentence tells a belief in words; a note is told by its text alone.
func (b Belief) Sentence() string { return sentence(b.Subject, b.Predicate, b.Value) }

func sentence(subject, predicate string, v Value) string {
	if predicate == Note {
		return v.String()
	}
	return subject + " " + spoken(predicate) + ": " + v.String()
}

func spoken(predicate string) string { return strings.ReplaceAll(predicate, "_", " ") }

// Sentence tells what the event said.
func (e Event) Sentence() string {
	switch {
	case !e.Retraction:
		return sentence(e.Subject, e.Predicate, e.Value)
	case e.Value.IsZero():
		return "took back everything said of " + e.Subject + " " + spoken(e.Predicate)
	}
	return "took back " + sentence(e.Subject, e.Predicate, e.Value)
}

// Timeline is how one pair changed.
type Timeline struct {
	Subject   string   `json:"subject"`
	Predicate string   `json:"predicate"`
	Now       []string `json:"now"` // in alphabetical order
	Steps     []Step   `json:"steps"`
}

// Step is one event and what it did to the pair.
type Step struct {
	At        time.Time `json:"at"`
	EventID   string    `json:"event_id"`
	Statement string    `json:"statement"`
	Predicate string    `json:"predicate"` // of the event, which may be another than the pair's
	Source    string    `json:"source"`
	Change    string    `json:"change"`
	Evidence  string    `json:"evidence,omitempty"`
	Added     []string  `json:"added,omitempty"`
	Removed   []string  `json:"removed,omitempty"`
}

// What a step may do to its pair.
const (
	Stated    = "stated"
	Replaced  = "replaced"
	Withdrawn = "withdrawn"
	NoChange  = "no change"
)

// Tell folds the events, which are sorted and are those of the pair and of its partners, and tells the pair's steps.
func Tell(rules Rules, subject, predicate string, events []Event, now time.Time) Timeline {
	t := Timeline{Subject: subject, Predicate: predicate, Now: []string{}, Steps: []Step{}}
	s := NewState(rules)
	told := false
	for _, e := range events {
		if e.ObservedAt.After(now) && !told {
			t.Now, told = sorted(sentences(s.Held(predicate))), true
		}
		c := s.Apply(e)
		added, removed := c.within(predicate)
		if e.Predicate != predicate && len(removed) == 0 {
			continue
		}
		slices.Sort(removed)
		t.Steps = append(t.Steps, Step{
			At: e.ObservedAt, EventID: e.ID, Statement: e.Sentence(), Predicate: e.Predicate, Source: e.Source,
			Change: changeName(added, removed), Evidence: e.Evidence, Added: added, Removed: removed,
		})
	}
	if !told {
		t.Now = sorted(sentences(s.Held(predicate)))
	}
	return t
}

// within tells what the change did under one predicate. A value that goes on being held did not change.
func (c Change) within(predicate string) (added, removed []string) {
	if c.Began != nil && c.Began.Predicate == predicate {
		added = []string{c.Began.Sentence()}
	}
	for _, b := range c.Ended {
		switch {
		case b.Predicate != predicate:
		case added != nil && b.Value.Key() == c.Began.Value.Key():
			added = nil
		default:
			removed = append(removed, b.Sentence())
		}
	}
	return added, removed
}

func changeName(added, removed []string) string {
	switch {
	case len(added) > 0 && len(removed) > 0:
		return Replaced
	case len(added) > 0:
		return Stated
	case len(removed) > 0:
		return Withdrawn
	}
	return NoChange
}

// Difference is what is believed differently of one pair at two instants.
type Difference struct {
	Subject   string   `json:"subject"`
	Predicate string   `json:"predicate"`
	Before    []string `json:"before"`
	After     []string `json:"after"`
	Added     []string `json:"added,omitempty"`
	Removed   []string `json:"removed,omitempty"`
}

// Compare tells how the beliefs of one pair differ, each list in alphabetical order. The second result is false when they
// do not differ.
func Compare(subject, predicate string, before, after []Belief) (Difference, bool) {
	d := Difference{
		Subject: subject, Predicate: predicate, Before: sorted(sentences(before)), After: sorted(sentences(after)),
		Added: sorted(sentencesOf(missing(after, before))), Removed: sorted(sentencesOf(missing(before, after))),
	}
	return d, len(d.Added)+len(d.Removed) > 0
}

// missing lists the beliefs of a whose value none of b has.
func missing(a, b []Belief) []Belief {
	have := make(map[string]bool, len(b))
	for _, x := range b {
		have[x.Value.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(x Belief) bool { return have[x.Value.Key()] })
}

func sentences(beliefs []Belief) []string {
	out := make([]string, len(beliefs))
	for i, b := range beliefs {
		out[i] = b.Sentence()
	}
	return out
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func sentencesOf(beliefs []Belief) []string {
	if len(beliefs) == 0 {
		return nil
	}
	return sentences(beliefs)
}
