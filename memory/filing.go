package memory

import (
	"slices"
	"time"

	"sallyport/memory/belief"
)

// filing writes to one subject. It keeps the beliefs of a store in step with the events: from what is kept when the new
// event is the latest there is, and by folding again when it is not.
type filing struct {
	s          *Service
	w          Writer
	rules      belief.Rules
	subject    string
	predicates []string   // whose beliefs may change, and those that they depend on
	latest     *time.Time // of their events; nil if there are none
}

func (s *Service) filing(w Writer, st belief.Statement) (*filing, error) {
	names := []string{st.Predicate}
	for _, ref := range st.Replaces {
		if name, err := s.words.Canonical(ref.Predicate); err == nil && name != "" {
			names = append(names, name)
		}
	}
	return s.filingOf(w, st.Subject, names...)
}

func (s *Service) filingOf(w Writer, subject string, predicates ...string) (*filing, error) {
	f := &filing{s: s, w: w, subject: subject, predicates: s.withPartners(predicates...)}
	var err error
	if f.rules, err = s.rules(w, f.predicates...); err != nil {
		return nil, err
	}
	f.latest, err = w.Latest(subject, f.predicates)
	return f, err
}

// remember files a statement.
func (f *filing) remember(st belief.Statement) (belief.Remembered, error) {
	var err error
	if st.At, err = f.free(st); err != nil {
		return belief.Remembered{}, err
	}
	state, err := f.stateAt(st)
	if err != nil {
		return belief.Remembered{}, err
	}
	before := state.All()
	out := state.Remember(st, f.s.words.Canonical, newEventID)
	if len(out.Events) == 0 {
		return out, nil
	}
	return out, f.commit(state, before, out.Events)
}

// free finds the first instant, from the statement's own on, at which the order of the pair's events is not left to
// chance. Values of a multi-valued predicate do not touch each other, so only events about the same value are in the way.
func (f *filing) free(st belief.Statement) (time.Time, error) {
	at := st.At
	if f.after(at) {
		return at, nil
	}
	single := f.rules(st.Predicate).Cardinality == belief.Single
	const some = 128
	for {
		just := at.Add(-time.Nanosecond)
		events, err := f.w.Events(EventFilter{Subject: st.Subject, Predicates: []string{st.Predicate}, After: &just, Limit: some})
		if err != nil {
			return at, err
		}
		for _, e := range events {
			if e.ObservedAt.After(at) {
				return at, nil
			}
			if e.ObservedAt.Equal(at) && (single || e.Value.IsZero() || e.Value.Key() == st.Value.Key()) {
				at = at.Add(time.Nanosecond)
			}
		}
		if len(events) < some {
			return at, nil
		}
	}
}

// after says whether t is later than every event that matters here.
func (f *filing) after(t time.Time) bool { return f.latest == nil || t.After(*f.latest) }

// current says whether what is kept is what was believed at t: there is nothing later.
func (f *filing) current(t time.Time) bool { return f.latest == nil || !t.Before(*f.latest) }

// stateAt returns what is believed at the statement's instant, as far as the statement can touch it.
func (f *filing) stateAt(st belief.Statement) (*belief.State, error) {
	if !f.current(st.At) {
		events, err := f.w.Events(EventFilter{Subject: f.subject, Predicates: f.predicates, UpTo: &st.At})
		if err != nil {
			return nil, err
		}
		return belief.Fold(f.rules, events), nil
	}
	var held []belief.Belief
	load := func(predicate, key string) error {
		found, err := f.w.Beliefs(Filter{Subject: f.subject, Predicate: predicate, Key: key})
		held = append(held, found...)
		return err
	}
	own := st.Value.Key()
	if f.rules(st.Predicate).Cardinality == belief.Single {
		own = "" // whatever it is, it ends
	}
	if err := load(st.Predicate, own); err != nil {
		return nil, err
	}
	for _, partner := range f.s.words.Partners(st.Predicate) {
		if err := load(partner, st.Value.Key()); err != nil {
			return nil, err
		}
	}
	for _, ref := range st.Replaces {
		name, err := f.s.words.Canonical(ref.Predicate)
		v, valueErr := belief.ParseValue(ref.Value)
		if err != nil || valueErr != nil || name == "" {
			continue
		}
		if err := load(name, v.Key()); err != nil {
			return nil, err
		}
	}
	return belief.NewState(f.rules, held...), nil
}

// commit appends events that were applied to state, and brings the kept beliefs in step.
func (f *filing) commit(state *belief.State, before []belief.Belief, events []belief.Event) error {
	if err := f.w.Append(events); err != nil {
		return err
	}
	if !f.current(events[0].ObservedAt) {
		return f.refold()
	}
	dropped, put := state.Changed(before)
	for i := range put {
		if at := slices.IndexFunc(events, func(e belief.Event) bool { return e.ID == put[i].EventID }); at >= 0 {
			put[i].Seq = events[at].Seq
		}
	}
	if err := f.w.DropBeliefs(dropped); err != nil {
		return err
	}
	return f.w.PutBeliefs(put)
}

// refold folds every event of the predicates again.
func (f *filing) refold() error {
	events, err := f.w.Events(EventFilter{Subject: f.subject, Predicates: f.predicates})
	if err != nil {
		return err
	}
	state := belief.Fold(f.rules, events)
	for _, p := range f.predicates {
		if err := f.w.ReplaceBeliefs(Pair{f.subject, p}, state.Held(p)); err != nil {
			return err
		}
	}
	return nil
}
