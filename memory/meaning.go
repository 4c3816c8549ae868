package memory

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"sallyport/memory/belief"
)

// Embedder tells what texts mean, in numbers.
type Embedder interface {
	// Model names whose numbers they are; vectors of two models are not compared.
	Model() string
	// Embed returns a vector of length 1 for each text, all of one size. An error that has a method Refused() bool which
	// returns true says that it does not take these texts, however often it is asked.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Meaning is how beliefs are found by what they mean.
type Meaning struct {
	Embedder   Embedder
	Similarity float64       // the least cosine, from 0 to 1, at which a belief answers a question
	Timeout    time.Duration // how long a question may take to be embedded; then its words alone are searched
}

// Bounds of a search by meaning.
const (
	// maxCompared is how many vectors one question is compared with: those of the latest statements. All of them are read.
	maxCompared = 10_000
	// maxEmbedded bounds, in bytes, what is embedded of one text: its beginning says what it is about.
	maxEmbedded = 8 << 10
	// restAfterFailure is how long no question is embedded after one could not be: a service that hangs would hold up each.
	restAfterFailure = 5 * time.Second
)

// meaning is the use of an embedder by a service.
type meaning struct {
	Meaning
	size    atomic.Int64 // how many numbers the model's vectors have; 0 until one was seen
	outage  outage
	log     *slog.Logger
	metrics *metrics
	backlog *backlog
}

func newMeaning(m Meaning, now func() time.Time, log *slog.Logger, counts *metrics) *meaning {
	return &meaning{Meaning: m, log: log, metrics: counts, backlog: newBacklog(), outage: outage{
		now: now, log: log, rest: restAfterFailure,
		begins: "texts cannot be embedded; until they can, beliefs are found by their words alone", ends: "texts are embedded again",
	}}
}

// embedQuestion adds to a search what the question means. When that cannot be found out in time, the words are searched alone.
func (s *Service) embedQuestion(ctx context.Context, q *Search, question string) {
	m := s.meaning
	if m == nil || q == nil || strings.TrimSpace(question) == "" {
		return
	}
	if m.outage.resting() {
		m.metrics.embedded("question", "skipped")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	vectors, err := m.embed(ctx, "question", []string{question})
	if err == nil {
		q.Meaning = vectors[0]
	}
}

// embed asks the embedder, and keeps the log to one line when it fails and one when it works again.
func (m *meaning) embed(ctx context.Context, of string, texts []string) ([][]float32, error) {
	cut := make([]string, len(texts))
	for i, t := range texts {
		cut[i] = beginning(t, maxEmbedded)
	}
	vectors, err := m.Embedder.Embed(ctx, cut)
	if err != nil {
		m.metrics.embedded(of, "failed")
		if !refusedText(err) && !errors.Is(err, context.Canceled) {
			m.outage.failed(err)
		}
		return nil, err
	}
	m.metrics.embedded(of, "ok")
	m.size.Store(int64(len(vectors[0])))
	m.outage.worked()
	return vectors, nil
}

// refusedText says whether the embedder works and does not take the texts.
func refusedText(err error) bool {
	var r interface{ Refused() bool }
	return errors.As(err, &r) && r.Refused()
}

// beginning cuts a text off after so many bytes, or a few less so that no character is cut.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// byMeaning answers as believed does: what the words find and what the meaning finds are each a list, best first, and what
// stands high on either stands high in the answer.
func (s *Service) byMeaning(r Reader, f Filter, at time.Time) ([]belief.Belief, error) {
	const pool = 100
	most := max(f.Limit, pool)
	words, selecting := *f.Search, *f.Search
	words.Meaning, selecting.Meaning, selecting.Select = nil, nil, true

	worded := f
	worded.Search, worded.Limit = &selecting, most
	byWords, err := s.believed(r, worded, at)
	if err != nil {
		return nil, err
	}
	meant, err := s.nearest(r, f, at, most)
	if err != nil {
		return nil, err
	}
	out := fuse(words.Span, byWords, meant)
	if !words.Select { // what neither list has comes after them
		worded.Search = &words
		rest, err := s.believed(r, worded, at)
		if err != nil {
			return nil, err
		}
		out = appendMissing(out, rest)
	}
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
}

func appendMissing(to, more []belief.Belief) []belief.Belief {
	have := make(map[int64]bool, len(to))
	for _, b := range to {
		have[b.Seq] = true
	}
	for _, b := range more {
		if !have[b.Seq] {
			to = append(to, b)
		}
	}
	slices.SortStableFunc(to, func(a, b belief.Belief) int { return first(a.Predicate != belief.Note, b.Predicate != belief.Note) })
	return to
}

// fuse merges two lists by reciprocal rank: a belief's score is the sum of 1/(60 + its place) over the lists that have it.
// As in every search notes come last, and what was stated in the span of time that the question names comes first.
func fuse(span belief.Span, lists ...[]belief.Belief) []belief.Belief {
	const flat = 60 // as in the paper that the method is from: the first places do not decide alone
	score := map[int64]float64{}
	var out []belief.Belief
	for _, list := range lists {
		for place, b := range list {
			if score[b.Seq] == 0 {
				out = append(out, b)
			}
			score[b.Seq] += 1 / float64(flat+place+1)
		}
	}
	inSpan := func(b belief.Belief) bool { return !span.IsZero() && span.Contains(b.ObservedAt) }
	slices.SortFunc(out, func(a, b belief.Belief) int {
		return cmp.Or(
			first(a.Predicate != belief.Note, b.Predicate != belief.Note),
			first(inSpan(a), inSpan(b)),
			-cmp.Compare(score[a.Seq], score[b.Seq]),
			-belief.ByTime(a, b),
		)
	})
	return out
}

// nearest returns the beliefs that pass the filter and mean what the question means, the nearest first.
func (s *Service) nearest(r Reader, f Filter, at time.Time, most int) ([]belief.Belief, error) {
	question := f.Search.Meaning
	f.Search, f.Limit = nil, 0
	v := VectorFilter{Model: s.meaning.Embedder.Model(), Size: len(question), Believed: &f, Limit: maxCompared}
	var then map[int64]belief.Belief // what was believed at another instant than now
	ahead, err := later(r, f.Subject, at)
	if err != nil {
		return nil, err
	}
	if ahead {
		held, err := s.folded(r, f, at)
		if err != nil {
			return nil, err
		}
		then = make(map[int64]belief.Belief, len(held))
		for _, b := range held {
			then[b.Seq] = b
		}
		v.Believed = nil
	}
	near, err := s.near(r, v, question, func(seq int64) bool { _, ok := then[seq]; return ok || !ahead })
	if err != nil {
		return nil, err
	}
	near = near[:min(len(near), most)]
	if !ahead {
		held, err := r.BeliefsOf(near)
		if err != nil {
			return nil, err
		}
		then = make(map[int64]belief.Belief, len(held))
		for _, b := range held {
			then[b.Seq] = b
		}
	}
	out := make([]belief.Belief, len(near))
	for i, seq := range near {
		out[i] = then[seq]
	}
	return out, nil
}

// near returns the statements whose vectors are like the question's, the most alike first.
func (s *Service) near(r Reader, v VectorFilter, question []float32, holds func(seq int64) bool) ([]int64, error) {
	alike := map[int64]float64{}
	var out []int64
	err := r.Vectors(v, func(x Vector) {
		if cosine := dot(question, x.Numbers); cosine >= s.meaning.Similarity && holds(x.Seq) {
			alike[x.Seq] = cosine
			out = append(out, x.Seq)
		}
	})
	slices.SortFunc(out, func(a, b int64) int { return cmp.Or(-cmp.Compare(alike[a], alike[b]), -cmp.Compare(a, b)) })
	return out, err
}

// dot is the cosine of two vectors of length 1 and the same size.
func dot(a, b []float32) float64 {
	var sum float32
	for i, n := range a {
		sum += n * b[i]
	}
	return float64(sum)
}
