package memory

import (
	"context"
	"encoding/json"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// RememberArgs are the arguments of remember: a typed statement, or a text and the statements found in it. Members that
// are nil were not given.
type RememberArgs struct {
	Subject     *string         `json:"subject"`
	Predicate   *string         `json:"predicate"`
	Value       json.RawMessage `json:"value"`
	Kind        *string         `json:"kind"`
	Source      *string         `json:"source"`
	Confidence  *float64        `json:"confidence"`
	ObservedAt  string          `json:"observed_at"`
	Replaces    *[]belief.Ref   `json:"replaces"`
	Cardinality *string         `json:"cardinality"`
	Description *string         `json:"description"`
	Text        *string         `json:"text"`
	Statements  *[]Proposal     `json:"statements"`
	Messages    json.RawMessage `json:"messages"`
}

// RememberResult is what one statement came to.
type RememberResult struct {
	Stored       belief.Belief   `json:"stored"`
	AlreadyKnown bool            `json:"already_known,omitempty"`
	Superseded   []belief.Belief `json:"superseded,omitempty"`
	Related      []belief.Belief `json:"related,omitempty"`
	Unreplaced   []belief.Ref    `json:"unreplaced,omitempty"`
}

// Bounds of what one remember may carry.
const (
	maxReplaces = 16
	maxRelated  = 8
)

// Remember files a typed statement, or a text with its statements. It returns a RememberResult or a TextResult.
func (s *Service) Remember(ctx context.Context, c Caller, a RememberArgs) (any, error) {
	if a.Text != nil || a.Statements != nil {
		return s.rememberText(ctx, c, a)
	}
	var out RememberResult
	now := s.clock()
	err := s.write(ctx, c, func(w Writer) error {
		st, p, err := s.statement(w, a, now)
		if err != nil {
			return err
		}
		out, err = s.file(w, st, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, c, func(r Reader) (err error) {
		out.Related, err = s.related(r, out.Stored, now)
		return err
	})
	if err != nil { // the statement is kept, and that has to be said
		s.log.Warn("cannot look for what is related to a statement", "error", err)
	}
	return out, nil
}

// statement checks the arguments and fills the defaults in.
func (s *Service) statement(r Reader, a RememberArgs, now time.Time) (st belief.Statement, p belief.Predicate, err error) {
	if st.Subject = belief.Subject(deref(a.Subject)); st.Subject == "" {
		return st, p, refusal.New("subject is missing: say whom or what the statement is about")
	}
	if p, err = s.predicate(r, deref(a.Predicate), deref(a.Cardinality), deref(a.Description), now); err != nil {
		return st, p, err
	}
	if st.Value, err = valueOf(a.Value, p.Name, p.ValueType); err != nil {
		return st, p, err
	}
	if p.ValueType == "" {
		p.ValueType = st.Value.Type()
	}
	st.Predicate = p.Name
	if st.Kind, err = kindOf(deref(a.Kind)); err != nil {
		return st, p, err
	}
	if st.Source, err = sourceOf(deref(a.Source)); err != nil {
		return st, p, err
	}
	if st.Confidence, err = confidence("confidence", a.Confidence, 1); err != nil {
		return st, p, err
	}
	if st.At, err = stated(a.ObservedAt, now); err != nil {
		return st, p, err
	}
	st.Replaces = deref(a.Replaces)
	if len(st.Replaces) > maxReplaces {
		return st, p, refusal.New("replaces has %d entries; at most %d are allowed", len(st.Replaces), maxReplaces)
	}
	return st, p, nil
}

// predicate returns the predicate that a statement is filed under. On an open vocabulary one that does not exist comes
// back with DefinedAt set and without a type, which its first value gives it.
func (s *Service) predicate(r Reader, spelled, cardinality, description string, now time.Time) (belief.Predicate, error) {
	if !s.words.IsOpen() {
		return s.registered(r, spelled)
	}
	name, err := s.canonical(spelled)
	if err != nil {
		return belief.Predicate{}, err
	}
	p, ok, err := s.lookup(r, name)
	if err != nil || ok {
		return p, err
	}
	card, err := oneOf("cardinality", cardinality, string(belief.Single), string(belief.Single), string(belief.Multi))
	if err != nil {
		return belief.Predicate{}, err
	}
	return belief.Predicate{Name: name, Cardinality: belief.Cardinality(card), Description: description, DefinedAt: now}, nil
}

// file writes a statement and what it brings about. It defines the predicate if nothing else has.
func (s *Service) file(w Writer, st belief.Statement, p belief.Predicate) (RememberResult, error) {
	if err := s.define(w, p); err != nil {
		return RememberResult{}, err
	}
	f, err := s.filing(w, st)
	if err != nil {
		return RememberResult{}, err
	}
	r, err := f.remember(st)
	if err != nil {
		return RememberResult{}, err
	}
	return RememberResult{
		Stored: plain(r.Stored), AlreadyKnown: r.Known, Superseded: plainAll(r.Superseded), Unreplaced: r.Unreplaced,
	}, nil
}

func (s *Service) define(w Writer, p belief.Predicate) error {
	if p.DefinedAt.IsZero() {
		return nil
	}
	if _, ok, err := s.lookup(w, p.Name); err != nil || ok {
		return err
	}
	return w.Define(p)
}

// related finds what else is believed of the subject, the nearest in wording first.
func (s *Service) related(r Reader, b belief.Belief, now time.Time) ([]belief.Belief, error) {
	words := belief.Words(b.Predicate + " " + b.Value.String())
	found, err := s.believed(r, Filter{
		Subject: b.Subject, NotPredicate: b.Predicate, NoNotes: true, Limit: maxRelated,
		Search: &Search{Words: belief.QueryWords(words)},
	}, now)
	return plainAll(found), err
}

// plain is a belief without the text that it was drawn from, which is shown only to those who ask.
func plain(b belief.Belief) belief.Belief {
	b.Evidence, b.EvidenceID = "", ""
	return b
}

func plainAll(beliefs []belief.Belief) []belief.Belief {
	for i := range beliefs {
		beliefs[i] = plain(beliefs[i])
	}
	return beliefs
}
