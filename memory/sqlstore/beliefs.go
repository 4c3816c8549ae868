package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/memory"
	"sallyport/memory/belief"
)

const beliefColumns = `b.seq, b.id, b.subject, b.predicate, b.observed_at, b.value, b.kind, b.source, b.confidence, b.evidence, b.evidence_id, b.replaced`

// Beliefs returns what all events amount to.
func (s *Scope) Beliefs(f memory.Filter) ([]belief.Belief, error) {
	if f.Search != nil {
		return s.searched(f)
	}
	where, args := s.beliefConditions(f)
	order := "b.note, b.subject, b.predicate, b.observed_at, b.seq"
	if f.Subject != "" && f.Predicate != "" {
		order = "b.observed_at, b.seq" // the same, and told so that an index is seen to have it
	}
	return s.beliefs("SELECT "+beliefColumns+" FROM beliefs b WHERE "+where+" ORDER BY "+order+limit(f.Limit), args)
}

func (s *Scope) beliefs(query string, args []any) ([]belief.Belief, error) {
	var out []belief.Belief
	err := s.rows("read beliefs", query, args, func(r row) error {
		b, err := scanBelief(r)
		out = append(out, b)
		return err
	})
	return out, err
}

// Elsewhere returns the beliefs, notes left out, that have the subject and value of one of those given.
func (s *Scope) Elsewhere(of []belief.Belief) ([]belief.Belief, error) {
	if len(of) == 0 {
		return nil, nil
	}
	subjects, keys := make([]string, len(of)), make([]string, len(of))
	for i, b := range of {
		subjects[i], keys[i] = s.dialect.text(b.Subject), b.Value.Key()
	}
	source, args, err := s.dialect.Pairs(subjects, keys)
	if err != nil {
		return nil, fmt.Errorf("write the values to look for: %w", err)
	}
	sameSubject := "b.subject = w.subject"
	if s.dialect.KeyedByHash {
		sameSubject += " AND b.subject_key = w.subject_key"
	}
	query := "SELECT DISTINCT " + beliefColumns + " FROM " + source + " CROSS JOIN beliefs b WHERE b.namespace = ? AND " + sameSubject +
		" AND b.same = w.same AND " + unindexed.number("note") + " = 0 ORDER BY b.predicate, b.observed_at, b.seq" // CROSS keeps this order in SQLite
	return s.beliefs(query, append(args, s.ns))
}

// PutBeliefs writes beliefs whose events are appended.
func (s *Scope) PutBeliefs(beliefs []belief.Belief) error {
	for _, b := range beliefs {
		value, replaced, err := encode(b.Value, b.Replaced)
		if err != nil {
			return err
		}
		err = s.exec("write a belief", `INSERT INTO beliefs (seq, namespace, id, subject, predicate, note, observed_at, value, same, kind,
			source, confidence, evidence, evidence_id, replaced) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			b.Seq, s.ns, b.EventID, b.Subject, b.Predicate, flag(b.Predicate == belief.Note), stamp(b.ObservedAt), value, b.Value.Key(), b.Kind,
			b.Source, b.Confidence, b.Evidence, b.EvidenceID, replaced)
		if err != nil {
			return err
		}
		if err := s.index(b); err != nil {
			return err
		}
	}
	return nil
}

// DropBeliefs takes beliefs away; their events stay.
func (s *Scope) DropBeliefs(beliefs []belief.Belief) error {
	for _, b := range beliefs {
		if err := s.drop("b.namespace = ? AND b.seq = ?", []any{s.ns, b.Seq}); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceBeliefs puts beliefs in the place of all that the pair has.
func (s *Scope) ReplaceBeliefs(p memory.Pair, beliefs []belief.Belief) error {
	where, args := s.beliefConditions(memory.Filter{Subject: p.Subject, Predicate: p.Predicate})
	if err := s.drop(where, args); err != nil {
		return err
	}
	return s.PutBeliefs(beliefs)
}

func (s *Scope) drop(where string, args []any) error {
	columns := strings.ReplaceAll(beliefColumns, "b.", "") // SQLite knows no alias here
	dropped, err := s.beliefs("DELETE FROM beliefs AS b WHERE "+where+" RETURNING "+columns, args)
	if err != nil {
		return err
	}
	for _, b := range dropped {
		if err := s.unindex(b); err != nil {
			return err
		}
	}
	return nil
}

// spelling is how conditions name columns. PostgreSQL, before it has counted a table, thinks that any index will do; what is
// unindexed is spelled so that none seems to serve it.
type spelling bool

const (
	indexable spelling = true
	unindexed spelling = false
)

func (i spelling) text(column string) string {
	if i == indexable {
		return "b." + column
	}
	return "(b." + column + " || '')"
}

func (i spelling) number(column string) string {
	if i == indexable {
		return "b." + column
	}
	return "(b." + column + " + 0)"
}

func (s *Scope) beliefConditions(f memory.Filter) (string, []any) {
	return s.conditionsOf(f, indexable, indexable)
}

// conditionsOf returns the conditions of a filter: those on the subject may be spelled in another way than all others.
func (s *Scope) conditionsOf(f memory.Filter, subject, others spelling) (string, []any) {
	where, args := []string{subject.number("namespace") + " = ?"}, []any{s.ns}
	add := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	switch {
	case f.Subject != "" && subject == indexable:
		condition, times := s.dialect.subject("b")
		where, args = append(where, condition), append(args, slices.Repeat([]any{f.Subject}, times)...)
	case f.Subject != "":
		add(subject.text("subject")+" = ?", f.Subject)
	}
	if f.Predicate != "" {
		predicate := others
		if f.Key != "" {
			predicate = unindexed // few have the value, and many the predicate
		}
		add(predicate.text("predicate")+" = ?", f.Predicate)
	}
	if f.Key != "" {
		add(others.text("same")+" = ?", f.Key)
	}
	if f.NotPredicate != "" {
		add("b.predicate <> ?", f.NotPredicate)
	}
	if f.NoNotes {
		add(others.number("note")+" = ?", flag(false))
	}
	if f.MinConfidence > 0 {
		add("b.confidence >= ?", f.MinConfidence)
	}
	if f.After != nil {
		add("b.observed_at >= ?", stamp(*f.After))
	}
	if f.Before != nil {
		add("b.observed_at <= ?", stamp(*f.Before))
	}
	return strings.Join(where, " AND "), args
}

func scanBelief(r row) (belief.Belief, error) {
	var b belief.Belief
	var at, value, replaced string
	err := r.Scan(&b.Seq, &b.EventID, &b.Subject, &b.Predicate, &at, &value, &b.Kind, &b.Source, &b.Confidence, &b.Evidence, &b.EvidenceID, &replaced)
	if err != nil {
		return b, err
	}
	if b.ObservedAt, err = unstamp(at); err != nil {
		return b, err
	}
	return b, decode(value, replaced, &b.Value, &b.Replaced)
}

// Define writes a predicate of the namespace.
func (s *Scope) Define(p belief.Predicate) error {
	s.grown(p.Name, p.Description)
	return s.exec("define a predicate", `INSERT INTO predicates (namespace, name, cardinality, value_type, description, defined_at) VALUES (?, ?, ?, ?, ?, ?)`,
		s.ns, p.Name, p.Cardinality, p.ValueType, p.Description, stamp(p.DefinedAt))
}

// Predicates returns what the namespace defined.
func (s *Scope) Predicates() ([]belief.Predicate, error) { return s.predicates("") }

// Predicate returns one predicate that the namespace defined.
func (s *Scope) Predicate(name string) (belief.Predicate, bool, error) {
	rows, err := s.predicates(" AND name = ?", name)
	if err != nil || len(rows) == 0 {
		return belief.Predicate{}, false, err
	}
	return rows[0], true, nil
}

func (s *Scope) predicates(more string, args ...any) ([]belief.Predicate, error) {
	var out []belief.Predicate
	query := "SELECT name, cardinality, value_type, description, defined_at FROM predicates WHERE namespace = ?" + more
	err := s.rows("read predicates", query, append([]any{s.ns}, args...), func(r row) error {
		var p belief.Predicate
		var at string
		err := r.Scan(&p.Name, &p.Cardinality, &p.ValueType, &p.Description, &at)
		if err != nil {
			return err
		}
		p.DefinedAt, err = unstamp(at)
		out = append(out, p)
		return err
	})
	return out, err
}
