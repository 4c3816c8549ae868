package sqlitestore

import (
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/memory/sqlstore"
)

// dialect is SQLite's. Lists are handed over as JSON.
var dialect = &sqlstore.Dialect{
	Pairs: func(subjects, keys []string) (string, []any, error) {
		pairs := make([][2]string, len(subjects))
		for i := range subjects {
			pairs[i] = [2]string{subjects[i], keys[i]}
		}
		raw, err := json.Marshal(pairs)
		return "(SELECT value ->> 0 AS subject, value ->> 1 AS same FROM json_each(?)) w", []any{string(raw)}, err
	},
	List: func(texts []string) (string, any, error) {
		raw, err := json.Marshal(texts)
		return "json_each(?)", string(raw), err
	},
	OneOf: func(column string, texts []string) (string, any, error) {
		raw, err := json.Marshal(texts)
		return column + " IN (SELECT value FROM json_each(?))", string(raw), err
	},
	Counts: func(stems []string, beliefs []int64) (string, []any, error) {
		pairs := make([][2]any, len(stems))
		for i := range stems {
			pairs[i] = [2]any{stems[i], beliefs[i]}
		}
		raw, err := json.Marshal(pairs)
		return "(SELECT value ->> 0 AS stem, value ->> 1 AS beliefs FROM json_each(?))", []any{string(raw)}, err
	},
	EachWord: func(words []sqlstore.Word, inner sqlstore.Inner) (string, []any) {
		var parts []string
		var args []any
		for _, w := range words {
			parts = append(parts, fmt.Sprintf("SELECT *, %d AS weight FROM (%s?%s LIMIT %d)", w.Weight, inner.Select, inner.Rest, w.Most))
			args = append(append(append(args, inner.SelectArgs...), w.Stem), inner.RestArgs...)
		}
		return strings.Join(parts, " UNION ALL "), args
	},
}
