package pgstore

import (
	"crypto/md5" //nolint:gosec // not for secrecy: an index is ordered by it
	"encoding/hex"

	"sallyport/memory/sqlstore"
)

// dialect is PostgreSQL's.
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
	List: func(texts []string) (string, any, error) {
		return "unnest(CAST(? AS TEXT[])) AS list (value)", texts, nil
	},
	OneOf: func(column string, texts []string) (string, any, error) {
		return column + " = ANY (CAST(? AS TEXT[]))", texts, nil
	},
	Counts: func(stems []string, beliefs []int64) (string, []any, error) {
		return "unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[])) AS more (stem, beliefs)", []any{stems, beliefs}, nil
	},
	// One statement however many words there are, so that its plan is kept.
	EachWord: func(words []sqlstore.Word, inner sqlstore.Inner) (string, []any) {
		stems, weights, most := make([]string, len(words)), make([]int64, len(words)), make([]int64, len(words))
		for i, w := range words {
			stems[i], weights[i], most[i] = w.Stem, w.Weight, w.Most
		}
		args := append([]any{stems, weights, most}, inner.SelectArgs...)
		return `SELECT held.*, q.weight FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS q (stem, weight, most)
			CROSS JOIN LATERAL (` + inner.Select + "q.stem" + inner.Rest + " LIMIT q.most) AS held", append(args, inner.RestArgs...)
	},
}
