package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// PairArgs name a pair of subject and predicate.
type PairArgs struct {
	Subject   string `json:"subject"`
	Predicate string `json:"predicate"`
}

// History returns every event of a pair in order of time; nil if there is none.
func (s *Service) History(ctx context.Context, c Caller, a PairArgs) ([]belief.Event, error) {
	var out []belief.Event
	err := s.read(ctx, c, func(r Reader) (err error) {
		out, err = s.history(r, belief.Subject(a.Subject), s.asked(a.Predicate))
		return err
	})
	for i := range out {
		out[i].Evidence, out[i].EvidenceID = "", ""
	}
	return out, err
}

func (s *Service) history(r Reader, subject, predicate string) ([]belief.Event, error) {
	if subject == "" || predicate == "" {
		return nil, nil
	}
	return r.Events(EventFilter{Subject: subject, Predicates: []string{predicate}})
}

// Timeline tells how a pair changed.
func (s *Service) Timeline(ctx context.Context, c Caller, a PairArgs) (belief.Timeline, error) {
	subject, predicate := belief.Subject(a.Subject), s.asked(a.Predicate)
	out := belief.Tell(nil, subject, predicate, nil, time.Time{})
	if subject == "" || predicate == "" {
		return out, nil
	}
	err := s.read(ctx, c, func(r Reader) error {
		names := s.withPartners(predicate)
		rules, err := s.rules(r, names...)
		if err != nil {
			return err
		}
		events, err := r.Events(EventFilter{Subject: subject, Predicates: names})
		out = belief.Tell(rules, subject, predicate, events, s.clock())
		return err
	})
	return out, err
}

// DiffArgs are the arguments of diff.
type DiffArgs struct {
	From    *string `json:"from"`
	To      string  `json:"to"`
	Subject string  `json:"subject"`
}

// Diff is what is believed differently at two instants.
type Diff struct {
	Changes []belief.Difference `json:"changes"`
}

// Diff compares what is believed at two instants, by subject and predicate.
func (s *Service) Diff(ctx context.Context, c Caller, a DiffArgs) (Diff, error) {
	out := Diff{Changes: []belief.Difference{}}
	from, to, err := s.stretch(a)
	if err != nil {
		return out, err
	}
	err = s.read(ctx, c, func(r Reader) error {
		changed, err := r.Pairs(from, to, belief.Subject(a.Subject))
		if err != nil {
			return err
		}
		for _, p := range s.touched(changed) {
			d, differs, err := s.compare(r, p, from, to)
			if err != nil {
				return err
			}
			if differs {
				out.Changes = append(out.Changes, d)
			}
		}
		return nil
	})
	return out, err
}

func (s *Service) stretch(a DiffArgs) (from, to time.Time, err error) {
	if a.From == nil || *a.From == "" {
		return from, to, refusal.Shape("from is missing: say since when")
	}
	f, err := instant("from", *a.From)
	if err != nil {
		return from, to, err
	}
	t, err := instant("to", a.To)
	if err != nil {
		return from, to, err
	}
	if to = s.clock(); t != nil {
		to = *t
	}
	if from = *f; !from.Before(to) {
		return from, to, refusal.New("from %s is not before to, which is %s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))
	}
	return from, to, nil
}

// touched adds the pairs whose values the changed ones may have ended, and sorts them.
func (s *Service) touched(pairs []Pair) []Pair {
	out := slices.Clone(pairs)
	for _, p := range pairs {
		for _, partner := range s.words.Partners(p.Predicate) {
			out = append(out, Pair{p.Subject, partner})
		}
	}
	slices.SortFunc(out, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Predicate, b.Predicate))
	})
	return slices.Compact(out)
}

func (s *Service) compare(r Reader, p Pair, from, to time.Time) (d belief.Difference, differs bool, err error) {
	names := s.withPartners(p.Predicate)
	rules, err := s.rules(r, names...)
	if err != nil {
		return d, false, err
	}
	events, err := r.Events(EventFilter{Subject: p.Subject, Predicates: names, UpTo: &to})
	if err != nil {
		return d, false, err
	}
	state := belief.NewState(rules)
	next := 0
	for ; next < len(events) && !events[next].ObservedAt.After(from); next++ {
		state.Apply(events[next])
	}
	before := state.Held(p.Predicate)
	for ; next < len(events); next++ {
		state.Apply(events[next])
	}
	d, differs = belief.Compare(p.Subject, p.Predicate, before, state.Held(p.Predicate))
	return d, differs, nil
}

// ForgetArgs are the arguments of forget. Without a value everything of the pair is forgotten.
type ForgetArgs struct {
	Subject   string       `json:"subject"`
	Predicate string       `json:"predicate"`
	Value     OptionalJSON `json:"value"`
}

// ForgetResult counts the beliefs that ended.
type ForgetResult struct {
	Withdrawn int `json:"withdrawn"`
}

// Forget ends one belief of a pair, or all of them. What was superseded by them stays superseded.
func (s *Service) Forget(ctx context.Context, c Caller, a ForgetArgs) (out ForgetResult, err error) {
	subject := belief.Subject(a.Subject)
	if subject == "" {
		return out, refusal.New("subject is missing")
	}
	err = s.writeAnyway(ctx, c, func(w Writer) error {
		p, err := s.registered(w, a.Predicate)
		if err != nil {
			return err
		}
		var v belief.Value
		if a.Value.Given {
			if v, err = valueOf(a.Value.Raw, p.Name, p.ValueType); err != nil {
				return err
			}
		}
		out.Withdrawn, err = s.retract(w, subject, p.Name, v)
		return err
	})
	return out, err
}

func (s *Service) retract(w Writer, subject, predicate string, v belief.Value) (int, error) {
	f, err := s.filingOf(w, subject, predicate)
	if err != nil {
		return 0, err
	}
	held, err := w.Beliefs(Filter{Subject: subject, Predicate: predicate, Key: v.Key()})
	if err != nil || len(held) == 0 {
		return 0, err
	}
	at := s.clock()
	if !f.after(at) {
		at = f.latest.Add(time.Nanosecond)
	}
	state := belief.NewState(f.rules, held...)
	e := belief.Retraction(subject, predicate, v, at, newEventID())
	state.Apply(e)
	return len(held), f.commit(state, held, []belief.Event{e})
}
