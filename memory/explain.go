package memory

import (
	"context"
	"slices"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// ExplainArgs are the arguments of explain.
type ExplainArgs struct {
	Question string `json:"question"`
}

// Explanation is a belief and why it is held.
type Explanation struct {
	Memory     string         `json:"memory"`
	Subject    string         `json:"subject"`
	Predicate  string         `json:"predicate"`
	Value      belief.Value   `json:"value"`
	StatedAt   time.Time      `json:"stated_at"`
	Source     string         `json:"source"`
	Evidence   string         `json:"evidence,omitempty"`
	SourceText string         `json:"source_text,omitempty"`
	Rules      []Rule         `json:"rules"`
	History    []belief.Event `json:"history"`
}

// Rule is where the definition of a predicate came from.
type Rule struct {
	Name        string             `json:"name"`
	Change      string             `json:"change"`
	Cardinality belief.Cardinality `json:"cardinality"`
	ValueType   belief.Type        `json:"value_type"`
	Description string             `json:"description"`
	At          *time.Time         `json:"at,omitempty"`
}

// Explain finds what answers a question and says why it is believed.
func (s *Service) Explain(ctx context.Context, c Caller, a ExplainArgs) ([]Explanation, error) {
	if a.Question == "" {
		return nil, refusal.New("question is missing")
	}
	at := s.clock()
	q := search(a.Question, at)
	q.Select = true
	s.embedQuestion(ctx, q, a.Question)
	out := []Explanation{}
	err := s.read(ctx, c, func(r Reader) error {
		found, err := s.believed(r, Filter{Search: q, Limit: defaultLimit}, at)
		if err != nil {
			return err
		}
		if err := addSources(r, found, true); err != nil {
			return err
		}
		histories := map[Pair][]belief.Event{}
		for _, b := range found {
			x, err := s.explained(r, b, histories)
			if err != nil {
				return err
			}
			out = append(out, x)
		}
		return nil
	})
	return out, err
}

// explained says why a belief is held. Histories are those of the pairs that were read before.
func (s *Service) explained(r Reader, b belief.Belief, histories map[Pair][]belief.Event) (Explanation, error) {
	x := Explanation{
		Memory: b.Sentence(), Subject: b.Subject, Predicate: b.Predicate, Value: b.Value, StatedAt: b.ObservedAt,
		Source: b.Source, Evidence: b.Evidence, SourceText: b.SourceText,
	}
	p, ok, err := s.lookup(r, b.Predicate)
	if err != nil {
		return x, err
	}
	if ok {
		x.Rules = []Rule{ruleOf(p)}
	}
	pair := Pair{b.Subject, b.Predicate}
	events, known := histories[pair]
	if !known {
		if events, err = s.history(r, b.Subject, b.Predicate); err != nil {
			return x, err
		}
		histories[pair] = events
	}
	x.History = events
	if b.Predicate == belief.Note {
		x.History = about(b.Value, events)
	}
	return x, nil
}

// about keeps the events that can touch one value: one note has nothing to do with the others of its pair.
func about(v belief.Value, events []belief.Event) []belief.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e belief.Event) bool { return !e.Value.IsZero() && e.Value.Key() != v.Key() })
}

func ruleOf(p belief.Predicate) Rule {
	r := Rule{Name: p.Name, Change: "part of the server's vocabulary", Cardinality: p.Cardinality, ValueType: p.ValueType, Description: p.Description}
	if !p.DefinedAt.IsZero() {
		r.Change, r.At = "defined by its first statement", &p.DefinedAt
	}
	return r
}
