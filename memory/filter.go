package memory

import (
	"cmp"
	"slices"

	"sallyport/memory/belief"
)

// holds says whether the filter lets a belief pass; search and limit apart.
func (f Filter) holds(b belief.Belief) bool {
	switch {
	case f.Subject != "" && b.Subject != f.Subject,
		f.Predicate != "" && b.Predicate != f.Predicate,
		f.Key != "" && b.Value.Key() != f.Key,
		f.NotPredicate != "" && b.Predicate == f.NotPredicate,
		f.NoNotes && b.Predicate == belief.Note,
		b.Confidence < f.MinConfidence,
		f.After != nil && b.ObservedAt.Before(*f.After),
		f.Before != nil && b.ObservedAt.After(*f.Before):
		return false
	}
	return true
}

// inOrder is the order of answers that no search ranks: notes last, subject, predicate, time.
func inOrder(a, b belief.Belief) int {
	return cmp.Or(
		first(a.Predicate != belief.Note, b.Predicate != belief.Note),
		cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Predicate, b.Predicate), belief.ByTime(a, b),
	)
}

// rank puts beliefs in the order of a search. Matches are the statements that share words with the question, best first.
func (q Search) rank(found []belief.Belief, matches []int64) []belief.Belief {
	place := make(map[int64]int, len(matches))
	for i, seq := range matches {
		place[seq] = i + 1
	}
	inSpan := func(b belief.Belief) bool { return !q.Span.IsZero() && q.Span.Contains(b.ObservedAt) }
	if q.Select {
		found = slices.DeleteFunc(found, func(b belief.Belief) bool { return place[b.Seq] == 0 && !inSpan(b) })
	}
	slices.SortFunc(found, func(a, b belief.Belief) int {
		return cmp.Or(
			first(a.Predicate != belief.Note, b.Predicate != belief.Note),
			first(inSpan(a), inSpan(b)),
			first(place[a.Seq] > 0, place[b.Seq] > 0),
			cmp.Compare(place[a.Seq], place[b.Seq]),
			-belief.ByTime(a, b),
		)
	})
	return found
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
