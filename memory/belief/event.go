package belief

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Where a statement came from.
const (
	UserStated    = "user_stated"
	AgentInferred = "agent_inferred"
	ToolResult    = "tool_result"
)

// What kind of statement it is.
const (
	Fact       = "fact"
	Preference = "preference"
)

// Event is one statement or retraction. It is written once and never changed.
type Event struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	Subject    string    `json:"subject"`
	Predicate  string    `json:"predicate"`
	Value      Value     `json:"value"` // none in a retraction of every value
	Confidence float64   `json:"confidence"`
	Source     string    `json:"source"`
	ObservedAt time.Time `json:"observed_at"`
	Retraction bool      `json:"retraction,omitempty"`
	Replaces   []Prior   `json:"replaces,omitempty"`    // what the statement withdrew by name
	ReplacedBy string    `json:"replaced_by,omitempty"` // the statement that asked for this retraction
	Evidence   string    `json:"evidence,omitempty"`    // the words of a text that the statement was drawn from
	EvidenceID string    `json:"evidence_id,omitempty"` // the event that holds the whole text

	Seq int64 `json:"-"` // the order of writing, which decides between events of one instant
}

// Prior is a value that a statement ended, or that is held elsewhere. Predicate is empty when it is the statement's own.
type Prior struct {
	Predicate  string    `json:"predicate,omitempty"`
	Value      Value     `json:"value"`
	Source     string    `json:"source"`
	ObservedAt time.Time `json:"observed_at"`
	EventID    string    `json:"event_id"`
}

// Belief is a value that is believed.
type Belief struct {
	Subject    string    `json:"subject"`
	Predicate  string    `json:"predicate"`
	Value      Value     `json:"value"`
	Confidence float64   `json:"confidence"`
	Source     string    `json:"source"`
	Kind       string    `json:"kind"`
	ObservedAt time.Time `json:"observed_at"`
	EventID    string    `json:"event_id"`
	Replaced   []Prior   `json:"replaced,omitempty"`  // what its statement ended, one step back
	Elsewhere  []Prior   `json:"elsewhere,omitempty"` // the same value of the same subject under other predicates
	DaysAgo    *int      `json:"days_ago,omitempty"`  // whole days from ObservedAt to the instant asked about
	Evidence   string    `json:"evidence,omitempty"`
	EvidenceID string    `json:"evidence_id,omitempty"`
	SourceText string    `json:"source_text,omitempty"`

	Seq int64 `json:"-"` // of its event
}

func beliefOf(e Event) Belief {
	return Belief{
		Subject: e.Subject, Predicate: e.Predicate, Value: e.Value, Confidence: e.Confidence, Source: e.Source,
		Kind: e.Kind, ObservedAt: e.ObservedAt, EventID: e.ID, Evidence: e.Evidence, EvidenceID: e.EvidenceID, Seq: e.Seq,
	}
}

// Prior returns b as something a statement under predicate ended: it is named only when it was held elsewhere.
func (b Belief) Prior(predicate string) Prior {
	p := Prior{Value: b.Value, Source: b.Source, ObservedAt: b.ObservedAt, EventID: b.EventID}
	if b.Predicate != predicate {
		p.Predicate = b.Predicate
	}
	return p
}

// Subject returns the subject that a caller's spelling stands for; it may be empty.
func Subject(spelled string) string { return strings.ToLower(strings.TrimSpace(spelled)) }

// ByTime orders beliefs by when they were stated, and those of one instant by when they were written.
func ByTime(a, b Belief) int {
	return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), cmp.Compare(a.Seq, b.Seq))
}

// SortEvents orders events by the time they tell of, and those of one instant by when they were written.
func SortEvents(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), cmp.Compare(a.Seq, b.Seq))
	})
}
