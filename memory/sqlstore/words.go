package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sallyport/memory"
	"sallyport/memory/belief"
)

// The index of words has a row for every stem of every belief, in the order in which beliefs of equal rank are answered:
// so the best of a word that half of all beliefs hold are found without a look at the rest. Beside it stands how many
// beliefs hold a stem, which says what the stem weighs. Both are the same on every engine, and so are the answers.

// everyBelief is counted as if it were a stem that all beliefs hold.
const everyBelief = ""

// index makes a belief findable by its words.
func (s *Scope) index(b belief.Belief) error {
	stems := b.Stems()
	source, arg, err := s.dialect.List(stems)
	if err != nil {
		return fmt.Errorf("write the words of a belief: %w", err)
	}
	err = s.exec("index a belief's words", `INSERT INTO words (namespace, stem, note, observed_at, seq)
		SELECT CAST(? AS BIGINT), value, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS BIGINT) FROM `+source,
		s.ns, flag(b.Predicate == belief.Note), stamp(b.ObservedAt), b.Seq, arg)
	if err != nil {
		return err
	}
	s.count(stems, 1)
	return nil
}

// unindex takes back what index did. The belief is as it was then.
func (s *Scope) unindex(b belief.Belief) error {
	stems := b.Stems()
	oneOf, arg, err := s.dialect.OneOf("stem", stems)
	if err != nil {
		return fmt.Errorf("write the words of a belief: %w", err)
	}
	err = s.exec("take a belief's words from the index", "DELETE FROM words WHERE namespace = ? AND note = ? AND observed_at = ? AND seq = ? AND "+oneOf,
		s.ns, flag(b.Predicate == belief.Note), stamp(b.ObservedAt), b.Seq, arg)
	if err != nil {
		return err
	}
	s.count(stems, -1)
	return nil
}

// count notes that so many more beliefs hold each stem.
func (s *Scope) count(stems []string, more int64) {
	if s.counts == nil {
		s.counts = map[string]int64{}
	}
	for _, stem := range stems {
		s.counts[stem] += more
	}
	s.counts[everyBelief] += more
}

// countWords writes what was counted. To write it belief by belief would cost PostgreSQL, which keeps every version of a row
// that a transaction made, the square of their number.
func (s *Scope) countWords() error {
	if len(s.counts) == 0 {
		return nil
	}
	stems, more := make([]string, 0, len(s.counts)), make([]int64, 0, len(s.counts))
	for _, stem := range slices.Sorted(maps.Keys(s.counts)) {
		stems, more = append(stems, stem), append(more, s.counts[stem])
	}
	clear(s.counts)
	source, args, err := s.dialect.Counts(stems, more)
	if err != nil {
		return fmt.Errorf("write words to count: %w", err)
	}
	return s.exec("count words", `INSERT INTO word_counts (namespace, stem, beliefs) SELECT CAST(? AS BIGINT), stem, beliefs FROM `+source+
		` WHERE TRUE ON CONFLICT (namespace, stem) DO UPDATE SET beliefs = word_counts.beliefs + excluded.beliefs`, append([]any{s.ns}, args...)...)
}

// Reindex indexes the beliefs of namespaces that were written before there was this index. write is the store's Write.
func Reindex(ctx context.Context, namespaces []string, write func(ctx context.Context, namespace string, fn func(memory.Writer) error) error) error {
	for _, namespace := range namespaces {
		if err := write(ctx, namespace, func(w memory.Writer) error { return w.(*Scope).reindex() }); err != nil {
			return fmt.Errorf("index words of before: %w", err)
		}
	}
	return nil
}

func (s *Scope) reindex() error {
	var indexed int
	ok, err := s.row("look for the index of words", "SELECT indexed FROM namespaces WHERE num = ?", []any{s.ns}, &indexed)
	if err != nil || !ok || indexed == 1 { // another process may have come first
		return err
	}
	all, err := s.Beliefs(memory.Filter{})
	if err != nil {
		return err
	}
	for _, b := range all {
		if err := s.index(b); err != nil {
			return err
		}
	}
	return s.exec("note that words are indexed", "UPDATE namespaces SET indexed = 1 WHERE num = ?", s.ns)
}
