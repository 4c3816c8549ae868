package memory

import (
	"cmp"
	"math"
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

// Weight is what a stem adds to the rank of a belief that holds it: the more, the fewer of all beliefs do. It is a whole
// number, so that whoever adds weights up comes to the same sum.
func Weight(holding, all int64) int64 {
	const scale, half = 1000, 0.5
	return max(1, int64(scale*math.Log1p((float64(all-holding)+half)/(float64(holding)+half))))
}

// weights returns what the stems of the question weigh among some beliefs.
func (q Search) weights(among []belief.Belief) map[string]int64 {
	holding := map[string]int64{}
	for _, b := range among {
		for _, s := range b.Stems() {
			holding[s]++
		}
	}
	out := map[string]int64{}
	for _, s := range belief.Stems(q.Words) {
		if holding[s] > 0 {
			out[s] = Weight(holding[s], int64(len(among)))
		}
	}
	return out
}

// Rank puts beliefs in the order of the search, and leaves out what it does not select. The weights are those of the
// question's stems.
func (q Search) Rank(found []belief.Belief, weights map[string]int64) []belief.Belief {
	rank := make(map[int64]int64, len(found))
	for _, b := range found {
		for _, s := range b.Stems() {
			rank[b.Seq] += weights[s]
		}
	}
	inSpan := func(b belief.Belief) bool { return !q.Span.IsZero() && q.Span.Contains(b.ObservedAt) }
	if q.Select {
		found = slices.DeleteFunc(found, func(b belief.Belief) bool { return rank[b.Seq] == 0 && !inSpan(b) })
	}
	slices.SortFunc(found, func(a, b belief.Belief) int {
		return cmp.Or(
			first(a.Predicate != belief.Note, b.Predicate != belief.Note),
			first(inSpan(a), inSpan(b)),
			cmp.Compare(rank[b.Seq], rank[a.Seq]),
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
