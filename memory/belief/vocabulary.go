package belief

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cardinality says how many values a pair of subject and predicate may have at one time.
type Cardinality string

// The cardinalities.
const (
	Single Cardinality = "single"
	Multi  Cardinality = "multi"
)

// Note is the predicate that whole texts are kept under. Its beliefs come last in every answer.
const Note = "note"

// Predicate is one thing that can be said of a subject.
type Predicate struct {
	Name        string      `json:"predicate"`
	Cardinality Cardinality `json:"cardinality"`
	ValueType   Type        `json:"value_type"`
	Description string      `json:"description"`
	Excludes    []string    `json:"excludes,omitempty"`   // stating a value here ends the same value there
	Historical  bool        `json:"historical,omitempty"` // tells of the past, which nothing stated later ends
	DefinedAt   time.Time   `json:"-"`                    // zero for the predicates that every namespace begins with
}

// Vocabulary is which predicates there are before a namespace has defined any, and whether it may define its own.
type Vocabulary struct {
	open   bool
	byName map[string]Predicate
}

// Closed is the vocabulary of a server whose predicates are fixed.
func Closed() Vocabulary { return vocabulary(false, closedStarters) }

// Open is the vocabulary of a server on which the first statement under a new predicate defines it.
func Open() Vocabulary { return vocabulary(true, slices.Concat(closedStarters, openStarters)) }

func vocabulary(open bool, rows []Predicate) Vocabulary {
	v := Vocabulary{open: open, byName: make(map[string]Predicate, len(rows))}
	for _, p := range rows {
		v.byName[p.Name] = p
	}
	return v
}

// IsOpen says whether statements may define predicates.
func (v Vocabulary) IsOpen() bool { return v.open }

// Starter returns a predicate that every namespace has.
func (v Vocabulary) Starter(name string) (Predicate, bool) {
	p, ok := v.byName[name]
	return p, ok
}

// Starters lists the predicates that every namespace has, in no order.
func (v Vocabulary) Starters() []Predicate {
	out := make([]Predicate, 0, len(v.byName))
	for _, p := range v.byName {
		out = append(out, p)
	}
	return out
}

// Partners lists the predicates whose statements may end a value under name, and those whose values a statement under
// name may end. It is empty for all but a few.
func (v Vocabulary) Partners(name string) []string {
	out := slices.Clone(v.byName[name].Excludes)
	for _, p := range v.byName {
		if slices.Contains(p.Excludes, name) && !slices.Contains(out, p.Name) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// ErrPredicateName says that no predicate can be called so.
var ErrPredicateName = errors.New("a predicate is a word or several joined by _, begins with a letter and has at most 64 bytes")

const maxPredicateBytes = 64

// Canonical returns the name that a caller's spelling stands for. A closed vocabulary takes a name as it is; an open one
// makes "Has Space" of the same predicate as "has_space", and fails with ErrPredicateName when nothing usable is left.
func (v Vocabulary) Canonical(spelled string) (string, error) {
	name := strings.TrimSpace(spelled)
	if !v.open {
		return name, nil
	}
	name = underscored(strings.ToLower(name))
	if name == "" || len(name) > maxPredicateBytes || name[0] < 'a' || name[0] > 'z' {
		return "", fmt.Errorf("%q: %w", spelled, ErrPredicateName)
	}
	return name, nil
}

// underscored turns every run of other characters than a-z and 0-9 into one underscore, and drops those at the ends.
func underscored(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
			continue
		}
		gap = true
	}
	return b.String()
}
