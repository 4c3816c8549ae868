package memory

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// Extractor finds statements in texts.
type Extractor interface {
	// Extract returns the statements that it finds. The predicates are those there are; with open, others may be made up. Of
	// its errors those are about the one text that have a method Refused() bool which returns true.
	Extract(ctx context.Context, text string, predicates []belief.Predicate, open bool) ([]Proposal, error)
}

// Extraction is how statements are read out of a text that came without any.
type Extraction struct {
	Extractor Extractor
	Timeout   time.Duration // how long a write may wait for it; then the text is kept as it is
}

type extraction struct {
	Extraction
	outage  outage
	metrics *metrics
}

func newExtraction(x Extraction, now func() time.Time, log *slog.Logger, counts *metrics) *extraction {
	const rest = 5 * time.Second
	return &extraction{Extraction: x, metrics: counts, outage: outage{
		now: now, log: log, rest: rest,
		begins: "no statements are read out of texts; until they are, texts are kept as they are", ends: "statements are read out of texts again",
	}}
}

// extract returns what a text states. If that cannot be found out it returns nothing: the text is kept in any case.
func (s *Service) extract(ctx context.Context, c Caller, text string) []Proposal {
	x := s.extraction
	if x.outage.resting() {
		x.metrics.extracted("skipped")
		return nil
	}
	predicates, err := s.Predicates(ctx, c)
	if err != nil { // the write that follows says so
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.Timeout)
	defer cancel()
	found, err := x.Extractor.Extract(ctx, text, predicates, s.words.IsOpen())
	if err != nil {
		x.metrics.extracted("failed")
		if !refusedText(err) && !errors.Is(err, context.Canceled) {
			x.outage.failed(err)
		}
		return nil
	}
	x.metrics.extracted("ok")
	x.outage.worked()
	return found
}

// fitting returns the proposals of a model that pass every check a caller's pass, and drops the others. They end no belief
// by name: a text could talk a model into that.
func (s *Service) fitting(r Reader, text string, given []Proposal, at, now time.Time) (filed []filable, kept []Proposal, err error) {
	defined := map[string]belief.Predicate{}
	for _, p := range given {
		p.Replaces = nil
		exists, err := s.exists(r, p.Predicate)
		if err != nil {
			return nil, nil, err
		}
		f, err := s.proposal(r, text, p, exists, defined, at, now)
		switch {
		case refusal.As(err) != nil:
			continue
		case err != nil:
			return nil, nil, err
		case !exists || f.p.Name == belief.Note || len(filed) == maxStatements:
			continue
		}
		p.Predicate = f.p.Name
		filed, kept = append(filed, f), append(kept, p)
	}
	s.metrics.proposed(len(kept), len(given)-len(kept))
	return filed, kept, nil
}

// Remembered is one statement that was read out of a text, in words.
type Remembered struct {
	Text         string   `json:"text"`
	Replaces     []string `json:"replaces,omitempty"`
	AlreadyKnown bool     `json:"already_known,omitempty"`
}

func inWords(results []RememberResult) []Remembered {
	var out []Remembered
	for _, r := range results {
		x := Remembered{Text: r.Stored.Sentence(), AlreadyKnown: r.AlreadyKnown}
		for _, b := range r.Superseded {
			x.Replaces = append(x.Replaces, b.Sentence())
		}
		out = append(out, x)
	}
	return out
}
