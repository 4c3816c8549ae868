package sqlitestore

import (
	"encoding/json"
	"strconv"
	"strings"

	"sallyport/memory/belief"
	"sallyport/memory/sqlstore"
)

// dialect is SQLite's.
var dialect = &sqlstore.Dialect{
	Pairs: func(subjects, keys []string) (string, []any, error) {
		pairs := make([][2]string, len(subjects))
		for i := range subjects {
			pairs[i] = [2]string{subjects[i], keys[i]}
		}
		raw, err := json.Marshal(pairs)
		return "(SELECT value ->> 0 AS subject, value ->> 1 AS same FROM json_each(?)) w", []any{string(raw)}, err
	},
	Index: func(ns, seq int64, text string) (string, []any) {
		return "INSERT INTO words (rowid, text) VALUES (?, ?)", []any{seq, indexed(ns, text)}
	},
	Matches: func(ns int64, words []string) (string, []any) {
		return "SELECT rowid AS seq, rank FROM words WHERE words MATCH ?", []any{anyOf(ns, words)}
	},
}

// The word index is one for all namespaces, but a namespace must neither find nor pay for another's words, and how rare a
// word is elsewhere must not show in its ranking. So every word carries the namespace's number in front, spelled in
// consonants: the stemmer takes a word's ending off by counting the vowels in front of it, and consonants do not change
// that. The mark that ends the number is not one of its digits, so no two namespaces share a word.
const (
	digits = "bcdfghjklm" // for 0 to 9
	mark   = 'q'
)

func prefix(ns int64) string {
	var b strings.Builder
	for _, d := range strconv.FormatInt(ns, 10) {
		b.WriteByte(digits[d-'0'])
	}
	b.WriteRune(mark)
	return b.String()
}

// indexed is the text of a statement as the index sees it.
func indexed(ns int64, text string) string {
	p := prefix(ns)
	words := belief.Words(text)
	var b strings.Builder
	for _, w := range words {
		b.WriteString(p)
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}

// anyOf asks the index for the statements that share a word. Words hold letters, digits and marks only, so quotes are
// enough to keep them from being read as part of the query language.
func anyOf(ns int64, words []string) string {
	p := prefix(ns)
	terms := make([]string, len(words))
	for i, w := range words {
		terms[i] = `"` + p + w + `"`
	}
	return strings.Join(terms, " OR ")
}
