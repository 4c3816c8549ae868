package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// RecallArgs are the arguments of recall.
type RecallArgs struct {
	Subject        string   `json:"subject"`
	Predicate      string   `json:"predicate"`
	Query          string   `json:"query"`
	AsOf           string   `json:"as_of"`
	MinConfidence  *float64 `json:"min_confidence"`
	Limit          int      `json:"limit"`
	WithSources    bool     `json:"with_sources"`
	ObservedAfter  string   `json:"observed_after"`
	ObservedBefore string   `json:"observed_before"`
}

const (
	defaultLimit = 20
	maxLimit     = 1000
)

// Recall returns what is believed, at most args.Limit beliefs.
func (s *Service) Recall(ctx context.Context, c Caller, a RecallArgs) ([]belief.Belief, error) {
	f, at, err := s.question(a)
	if err != nil {
		return nil, err
	}
	s.embedQuestion(ctx, f.Search, a.Query)
	out := []belief.Belief{}
	err = s.read(ctx, c, func(r Reader) error {
		ahead, err := later(r, "", at)
		if err != nil {
			return err
		}
		found, err := s.believedAmid(r, f, at, ahead)
		if err != nil {
			return err
		}
		if err := s.addElsewhere(r, found, at, ahead); err != nil {
			return err
		}
		if err := addSources(r, found, a.WithSources); err != nil {
			return err
		}
		for i := range found {
			days := wholeDays(found[i].ObservedAt, at)
			found[i].DaysAgo = &days
		}
		out = append(out, found...)
		return nil
	})
	return out, err
}

// question checks the arguments and says at which instant they ask.
func (s *Service) question(a RecallArgs) (f Filter, at time.Time, err error) {
	f.Subject = belief.Subject(a.Subject)
	if strings.TrimSpace(a.Predicate) != "" {
		f.Predicate = s.asked(a.Predicate)
	}
	if f.Subject == "" && f.Predicate == "" && a.Query == "" {
		return f, at, refusal.New("nothing is asked: give a subject, a predicate or a query")
	}
	if f.MinConfidence, err = confidence("min_confidence", a.MinConfidence, 0); err != nil {
		return f, at, err
	}
	if f.After, err = instant("observed_after", a.ObservedAfter); err != nil {
		return f, at, err
	}
	if f.Before, err = instant("observed_before", a.ObservedBefore); err != nil {
		return f, at, err
	}
	at = s.clock()
	if asOf, err := instant("as_of", a.AsOf); err != nil {
		return f, at, err
	} else if asOf != nil {
		at = *asOf
	}
	switch f.Limit = a.Limit; {
	case a.Limit > maxLimit:
		return f, at, refusal.New("limit is %d; at most %d are returned at a time", a.Limit, maxLimit)
	case a.Limit <= 0:
		f.Limit = defaultLimit
	}
	if a.Query != "" && (f.Subject == "" || f.Predicate == "") {
		f.Search = search(a.Query, at)
		// Who names a subject or a predicate has said what the answer is about; the words then only put it in order.
		f.Search.Select = f.Subject == "" && f.Predicate == ""
	}
	return f, at, nil
}

func search(question string, at time.Time) *Search {
	span, words := belief.NamedSpan(belief.Words(question), at)
	return &Search{Words: belief.QueryWords(words), Span: span}
}

// believed returns what is believed at an instant.
func (s *Service) believed(r Reader, f Filter, at time.Time) ([]belief.Belief, error) {
	ahead, err := later(r, "", at)
	if err != nil {
		return nil, err
	}
	return s.believedAmid(r, f, at, ahead)
}

// believedAmid returns what is believed at an instant, ahead of which the namespace has events or not. What the store keeps
// is right unless something is dated later; then the events up to the instant are folded.
func (s *Service) believedAmid(r Reader, f Filter, at time.Time, ahead bool) ([]belief.Belief, error) {
	if f.Search != nil && f.Search.Meaning != nil {
		return s.byMeaning(r, f, at)
	}
	if ahead && f.Subject != "" {
		var err error
		if ahead, err = later(r, f.Subject, at); err != nil {
			return nil, err
		}
	}
	if !ahead {
		return r.Beliefs(f)
	}
	return s.folded(r, f, at)
}

// later says whether there are events dated after an instant, of a subject or of any. An index answers that at once.
func later(r Reader, subject string, at time.Time) (bool, error) {
	events, err := r.Events(EventFilter{Subject: subject, After: &at, Limit: 1})
	return len(events) > 0, err
}

// folded answers as BeliefReader.Beliefs does, from the events up to an instant.
func (s *Service) folded(r Reader, f Filter, at time.Time) ([]belief.Belief, error) {
	scope := EventFilter{Subject: f.Subject, UpTo: &at}
	var predicates []string
	if f.Predicate != "" {
		predicates = s.withPartners(f.Predicate)
		scope.Predicates = predicates
	}
	rules, err := s.rules(r, predicates...)
	if err != nil {
		return nil, err
	}
	events, err := r.Events(scope)
	if err != nil {
		return nil, err
	}
	states := map[string]*belief.State{}
	for _, e := range events {
		if states[e.Subject] == nil {
			states[e.Subject] = belief.NewState(rules)
		}
		states[e.Subject].Apply(e)
	}
	var out []belief.Belief
	for _, state := range states {
		for _, b := range state.All() {
			if f.holds(b) {
				out = append(out, b)
			}
		}
	}
	return ranked(f, out), nil
}

// ranked puts what is believed in the order of the filter, and cuts it off at its limit.
func ranked(f Filter, found []belief.Belief) []belief.Belief {
	if f.Search == nil {
		slices.SortFunc(found, inOrder)
	} else {
		found = f.Search.Rank(found, f.Search.weights(found))
	}
	if f.Limit > 0 && len(found) > f.Limit {
		found = found[:f.Limit]
	}
	return found
}

// addElsewhere adds to each belief, notes excepted, where else the subject has the same value.
func (s *Service) addElsewhere(r Reader, found []belief.Belief, at time.Time, ahead bool) error {
	others, err := s.sameValues(r, found, at, ahead)
	if err != nil {
		return err
	}
	type key struct{ subject, value string }
	by := map[key][]belief.Belief{}
	for _, b := range others {
		k := key{b.Subject, b.Value.Key()}
		by[k] = append(by[k], b)
	}
	for i := range found {
		b := &found[i]
		if b.Predicate == belief.Note {
			continue
		}
		for _, other := range by[key{b.Subject, b.Value.Key()}] {
			if other.Predicate != b.Predicate {
				b.Elsewhere = append(b.Elsewhere, other.Prior(""))
			}
		}
	}
	return nil
}

func (s *Service) sameValues(r Reader, found []belief.Belief, at time.Time, ahead bool) ([]belief.Belief, error) {
	var subjects []string
	for _, b := range found {
		if b.Predicate != belief.Note && !slices.Contains(subjects, b.Subject) {
			subjects = append(subjects, b.Subject)
		}
	}
	if len(subjects) == 0 {
		return nil, nil
	}
	if !ahead {
		return r.Elsewhere(found)
	}
	var out []belief.Belief
	for _, subject := range subjects {
		held, err := s.believedAmid(r, Filter{Subject: subject, NoNotes: true}, at, ahead)
		if err != nil {
			return nil, err
		}
		out = append(out, held...)
	}
	return out, nil
}

// addSources adds the texts that beliefs were drawn from, or takes their traces away.
func addSources(r Reader, found []belief.Belief, wanted bool) error {
	texts := map[string]string{}
	for i := range found {
		b := &found[i]
		if !wanted || b.EvidenceID == "" {
			*b = plain(*b)
			continue
		}
		text, known := texts[b.EvidenceID]
		if !known {
			e, _, err := r.Event(b.EvidenceID)
			if err != nil {
				return err
			}
			text = e.Value.String()
			texts[b.EvidenceID] = text
		}
		b.SourceText = text
	}
	return nil
}

func wholeDays(from, to time.Time) int {
	const perDay = 24 * 60 * 60
	seconds := to.Unix() - from.Unix() // a Duration would overflow after 292 years
	if to.Nanosecond() < from.Nanosecond() {
		seconds--
	}
	return int(seconds / perDay)
}
