package memory

import (
	"context"
	"slices"
	"strings"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// Predicates lists every predicate of the caller's namespace by name.
func (s *Service) Predicates(ctx context.Context, c Caller) ([]belief.Predicate, error) {
	out := s.words.Starters()
	err := s.read(ctx, c, func(r Reader) error {
		defined, err := s.defined(r)
		out = append(out, defined...)
		return err
	})
	slices.SortFunc(out, func(a, b belief.Predicate) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (s *Service) defined(r Reader) ([]belief.Predicate, error) {
	if !s.words.IsOpen() {
		return nil, nil
	}
	return r.Predicates()
}

// lookup returns a predicate by its canonical name.
func (s *Service) lookup(r Reader, name string) (belief.Predicate, bool, error) {
	if p, ok := s.words.Starter(name); ok || !s.words.IsOpen() {
		return p, ok, nil
	}
	return r.Predicate(name)
}

// registered returns the predicate that a caller spelled, which has to exist.
func (s *Service) registered(r Reader, spelled string) (belief.Predicate, error) {
	name, err := s.canonical(spelled)
	if err != nil {
		return belief.Predicate{}, err
	}
	p, ok, err := s.lookup(r, name)
	if err == nil && !ok {
		err = refusal.New("there is no predicate %q: list_predicates names those there are", name)
	}
	return p, err
}

func (s *Service) canonical(spelled string) (string, error) {
	if strings.TrimSpace(spelled) == "" {
		return "", refusal.New("predicate is missing")
	}
	name, err := s.words.Canonical(spelled)
	if err != nil {
		return "", refusal.New("predicate %s", err)
	}
	return name, nil
}

// asked returns the name that a reading caller means; what cannot be a name is kept, and finds nothing.
func (s *Service) asked(spelled string) string {
	name, err := s.words.Canonical(spelled)
	if err != nil {
		return strings.TrimSpace(spelled)
	}
	return name
}

// rules returns how the predicates named are folded, or all of the namespace if none is.
func (s *Service) rules(r Reader, names ...string) (belief.Rules, error) {
	known := map[string]belief.Predicate{}
	if s.words.IsOpen() {
		if err := s.loadRules(r, known, names); err != nil {
			return nil, err
		}
	}
	return func(name string) belief.Predicate {
		if p, ok := s.words.Starter(name); ok {
			return p
		}
		if p, ok := known[name]; ok {
			return p
		}
		return belief.Predicate{Name: name, Cardinality: belief.Multi}
	}, nil
}

func (s *Service) loadRules(r Reader, known map[string]belief.Predicate, names []string) error {
	if len(names) == 0 {
		rows, err := r.Predicates()
		for _, p := range rows {
			known[p.Name] = p
		}
		return err
	}
	for _, name := range names {
		p, ok, err := s.lookup(r, name)
		if err != nil {
			return err
		}
		if ok {
			known[name] = p
		}
	}
	return nil
}

// withPartners adds to the predicates named those that end their values or whose values they end.
func (s *Service) withPartners(names ...string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		out = append(out, s.words.Partners(n)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
