package sqlstore

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"sallyport/memory"
	"sallyport/memory/belief"
)

// Bounds of what one search looks at, however much the namespace holds.
const (
	// fewBeliefs is up to how many beliefs of a subject, or under a predicate, are put in order without the index.
	fewBeliefs = 256
	// lookedAt is how many rows of the index are read for all words of a question together, though never less for one than
	// are asked for. It is shared so that rare words are read to the end, and of common ones the newest beliefs.
	lookedAt = 512
)

// Word is a stem that is looked for.
type Word struct {
	Stem   string
	Weight int64 // what it adds to a rank
	Most   int64 // how many beliefs that hold it are looked at
	held   int64 // how many hold it
}

// Inner is the query for the beliefs that hold one word. Between its two parts stands the stem.
type Inner struct {
	Select     string
	SelectArgs []any
	Rest       string // its end orders the rows; what limits them to the word's Most comes after
	RestArgs   []any
}

// searched answers Beliefs for a filter with a search.
func (s *Scope) searched(f memory.Filter) ([]belief.Belief, error) {
	words, err := s.weigh(f.Search.Words)
	if err != nil {
		return nil, err
	}
	if few, err := s.few(f); err != nil || few {
		if err != nil {
			return nil, err
		}
		return s.inOrder(f, words)
	}
	if len(words) == 0 && f.Search.Select && f.Search.Span.IsZero() {
		return nil, nil
	}
	if all := share(words, f); all && f.Search.Select && f.Search.Span.IsZero() {
		return s.ranked(f, words, "", f.Limit)
	}
	out, err := s.ranked(f, words, "0", f.Limit)
	if err != nil || f.NoNotes || f.Limit > 0 && len(out) >= f.Limit {
		return out, err
	}
	rest := 0
	if f.Limit > 0 {
		rest = f.Limit - len(out)
	}
	notes, err := s.ranked(f, words, "1", rest)
	return append(out, notes...), err
}

// few says whether a subject or a predicate has so few beliefs that they are best read and put in order.
func (s *Scope) few(f memory.Filter) (bool, error) {
	if f.Subject == "" && f.Predicate == "" {
		return false, nil
	}
	var n int
	where, args := s.beliefConditions(memory.Filter{Subject: f.Subject, Predicate: f.Predicate})
	_, err := s.row("count beliefs", "SELECT count(*) FROM (SELECT 1 FROM beliefs b WHERE "+where+limit(fewBeliefs+1)+") AS few", args, &n)
	return n <= fewBeliefs, err
}

// inOrder reads all beliefs that the filter lets pass and puts them in order.
func (s *Scope) inOrder(f memory.Filter, words []Word) ([]belief.Belief, error) {
	weights := make(map[string]int64, len(words))
	for _, w := range words {
		weights[w.Stem] = w.Weight
	}
	q, most := f.Search, f.Limit
	f.Search, f.Limit = nil, 0
	all, err := s.Beliefs(f)
	if err != nil {
		return nil, err
	}
	all = q.Rank(all, weights)
	if most > 0 && len(all) > most {
		all = all[:most]
	}
	return all, nil
}

// weigh finds out which words of a question beliefs hold, and what each weighs; the rarest comes first.
func (s *Scope) weigh(question []string) ([]Word, error) {
	stems := belief.Stems(question)
	if len(stems) == 0 {
		return nil, nil
	}
	if err := s.countWords(); err != nil {
		return nil, err
	}
	oneOf, arg, err := s.dialect.OneOf("stem", append(stems, everyBelief))
	if err != nil {
		return nil, err
	}
	var out []Word
	var beliefs int64
	err = s.rows("count the beliefs that hold words", "SELECT stem, beliefs FROM word_counts WHERE namespace = ? AND beliefs > 0 AND "+oneOf, []any{s.ns, arg},
		func(r row) error {
			var w Word
			err := r.Scan(&w.Stem, &w.held)
			if w.Stem == everyBelief {
				beliefs = w.held
				return err
			}
			out = append(out, w)
			return err
		})
	for i := range out {
		out[i].Weight = memory.Weight(out[i].held, beliefs)
	}
	slices.SortFunc(out, func(a, b Word) int { return cmp.Or(cmp.Compare(a.held, b.held), strings.Compare(a.Stem, b.Stem)) })
	return out, err
}

// share says of how many beliefs each word is looked for, and whether those are all that hold one. What a rare word leaves
// of its share goes to those that are less rare.
func share(words []Word, f memory.Filter) (all bool) {
	least := int64(f.Limit)
	if f.Limit <= 0 {
		least = math.MaxInt32
	}
	left, all := int64(lookedAt), true
	if len(words) == 1 && f.Search.Select { // then the newest are the best
		left = least
	}
	for i := range words {
		w := &words[i]
		w.Most = min(w.held, max(left/int64(len(words)-i), least))
		left = max(0, left-w.Most)
		all = all && w.Most == w.held
	}
	return all
}

// ranked answers with the best of all beliefs, or of those that are notes ("1") or are none ("0").
//
// The best are looked for among the newest that hold each word, and, where they count too, the newest that hold none; of
// those in the span that the search names, those after, and those before it. Each of these is a piece of one index. What
// is found is then put in order. So the answer is right unless a belief holds several words, none of them rare, and there
// are many newer ones that hold each.
func (s *Scope) ranked(f memory.Filter, words []Word, notes string, most int) ([]belief.Belief, error) {
	where, args := s.conditionsOf(f, unindexed, unindexed)
	narrow := f.Subject != "" || f.Predicate != "" || f.Key != "" || f.NotPredicate != "" || f.MinConfidence > 0
	var found query
	for _, r := range ranges(f) {
		if len(words) > 0 {
			inner := Inner{Select: "SELECT w.seq, w.note, w.observed_at FROM words w WHERE w.namespace = ? AND w.stem = ", SelectArgs: []any{s.ns}}
			if narrow && f.Search.Select { // no more may be left out than has to be
				inner.Select = "SELECT w.seq, w.note, w.observed_at FROM words w CROSS JOIN beliefs b WHERE b.seq = w.seq AND " + where + " AND w.namespace = ? AND w.stem = "
				inner.SelectArgs = append(slices.Clone(args), s.ns)
			}
			when, whenArgs := r.conditions("w", notes)
			inner.Rest, inner.RestArgs = when+" ORDER BY w.observed_at DESC, w.seq DESC", whenArgs
			found.union(s.dialect.EachWord(words, inner))
		}
		if r.inSpan || !f.Search.Select {
			s.fill(&found, f, r, notes, most)
		}
	}
	if found.text == "" {
		return nil, nil
	}
	order, orderArgs := inOrder("", f.Search.Span)
	text := "SELECT seq, note, observed_at, CAST(sum(weight) AS BIGINT) AS rank FROM (" + found.text + ") AS found GROUP BY seq, note, observed_at" + order
	all := slices.Concat(found.args, orderArgs)
	if !narrow || f.Search.Select {
		text += limit(most)
	}
	order, orderArgs = inOrder("m.", f.Search.Span)
	text = "SELECT " + beliefColumns + " FROM (" + text + ") AS m CROSS JOIN beliefs b WHERE b.seq = m.seq AND " + where + order + limit(most)
	return s.beliefs(text, slices.Concat(all, args, orderArgs))
}

// fill adds the newest beliefs of a stretch, whatever their words. Those under a predicate that is not asked for may be nearly
// all there is, so then the newest are looked through up to a bound, and beside them what stands under other predicates.
func (s *Scope) fill(found *query, f memory.Filter, r stretch, notes string, most int) {
	when, whenArgs := r.conditions("b", notes)
	not := f.NotPredicate
	f.NotPredicate = ""
	where, args := s.conditionsOf(f, indexable, unindexed)
	args = slices.Concat(args, whenArgs)
	newest := "(SELECT b.seq, b.note, b.observed_at, b.predicate FROM beliefs b WHERE " + where + when + " ORDER BY b.observed_at DESC, b.seq DESC"
	const columns = "SELECT seq, note, observed_at, 0 AS weight FROM "
	if not == "" {
		found.union(columns+newest+limit(most)+") AS newest", args)
		return
	}
	found.union(columns+newest+limit(max(lookedAt, most))+") AS newest WHERE predicate <> ?", append(args, not))
	for _, other := range []string{"<", ">"} {
		found.union(columns+"(SELECT b.seq, b.note, b.observed_at FROM beliefs b WHERE "+where+when+" AND b.predicate "+other+
			" ? ORDER BY b.predicate, b.observed_at, b.seq"+limit(most)+") AS others", append(slices.Clone(args), not))
	}
}

// inOrder puts what was found in order, best first.
func inOrder(table string, span belief.Span) (clause string, args []any) {
	clause = " ORDER BY " + table + "note, "
	if !span.IsZero() {
		clause += "(" + table + "observed_at >= ? AND " + table + "observed_at < ?) DESC, "
		args = []any{stamp(span.From), stamp(span.To)}
	}
	return clause + table + "rank DESC, " + table + "observed_at DESC, " + table + "seq DESC", args
}

// query is a statement that grows.
type query struct {
	text string
	args []any
}

func (q *query) union(text string, args []any) {
	if q.text != "" {
		q.text += " UNION ALL "
	}
	q.text, q.args = q.text+text, append(q.args, args...)
}

// stretch is a stretch of time. Its ends are instants as they are kept, from included and to not; an empty one is open.
type stretch struct {
	from, to string
	filter   memory.Filter
	inSpan   bool
}

// ranges returns the stretches of time that are answered one after the other.
func ranges(f memory.Filter) []stretch {
	span := f.Search.Span
	if span.IsZero() {
		return []stretch{{filter: f}}
	}
	from, to := stamp(span.From), stamp(span.To)
	return []stretch{{from: from, to: to, filter: f, inSpan: true}, {from: to, filter: f}, {to: from, filter: f}}
}

func (r stretch) conditions(table, notes string) (conditions string, args []any) {
	add := func(condition string, arg any) {
		conditions, args = conditions+" AND "+table+"."+condition, append(args, arg)
	}
	if notes != "" {
		conditions = " AND " + table + ".note = " + notes
	}
	if r.from != "" {
		add("observed_at >= ?", r.from)
	}
	if r.to != "" {
		add("observed_at < ?", r.to)
	}
	if r.filter.After != nil {
		add("observed_at >= ?", stamp(*r.filter.After))
	}
	if r.filter.Before != nil {
		add("observed_at <= ?", stamp(*r.filter.Before))
	}
	return conditions, args
}
