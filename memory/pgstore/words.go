package pgstore

import (
	"crypto/md5" //nolint:gosec // not for secrecy: an index is ordered by it
	"encoding/hex"
	"strconv"

	"sallyport/memory/belief"
	"sallyport/memory/sqlstore"
)

// dialect is PostgreSQL's.
//
// The search weighs a statement by the words that it shares with the question, rare ones more, in a statement of few
// words more. What shares a word is found whatever it weighs, so the same question finds the same as on SQLite.
var dialect = &sqlstore.Dialect{
	Numbered:    true,
	NoNUL:       true,
	KeyedByHash: true,
	// Columns of their own, and the hash from here: a function of a column would keep row-level security from using an index.
	Pairs: func(subjects, keys []string) (string, []any, error) {
		hashes := make([]string, len(subjects))
		for i, s := range subjects {
			sum := md5.Sum([]byte(s)) //nolint:gosec // as above
			hashes[i] = hex.EncodeToString(sum[:])
		}
		return "unnest(CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[])) AS w (subject, same, subject_key)", []any{subjects, keys, hashes}, nil
	},
	Index: func(ns, seq int64, text string) (string, []any) {
		words := belief.Words(text)
		return "INSERT INTO words (seq, namespace, stems, total) VALUES (?, ?, array_to_tsvector(CAST(? AS TEXT[])), ?)",
			[]any{seq, ns, stems(ns, words), len(words)}
	},
	Matches: func(ns int64, words []string) (string, []any) {
		wanted := stems(ns, words)
		for i := range wanted {
			wanted[i] = "'" + wanted[i] + "'" // words hold letters, digits and marks only
		}
		return `SELECT hit.seq, -sum(ln(1 + 1000000.0 / hit.n) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * hit.total / 10.0))) AS rank
			FROM (SELECT w.seq, w.total, count(*) OVER (PARTITION BY q.stem) AS n FROM unnest(CAST(? AS TEXT[])) AS q (stem)
			JOIN words w ON w.stems @@ CAST(q.stem AS TSQUERY) AND w.namespace = ?) hit GROUP BY hit.seq`, []any{wanted, ns}
	},
}

// maxStemBytes bounds the stems of one statement. PostgreSQL takes 1 MiB of them; what comes later in a longer text is not
// found by its words.
const maxStemBytes = 512 << 10

// stems returns the stem of every word once, with the namespace's number in front.
func stems(ns int64, words []string) []string {
	prefix := strconv.FormatInt(ns, 10) + "q" // all consonants to the stemmer
	seen := make(map[string]bool, len(words))
	out := make([]string, 0, len(words))
	size := 0
	for _, w := range words {
		s := stem(prefix + fold(w))
		if seen[s] {
			continue
		}
		if size += len(s); size > maxStemBytes {
			break
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}
