package keystore

import (
	"cmp"
	"database/sql"
)

// scanner is a row: *sql.Row or *sql.Rows.
type scanner interface{ Scan(into ...any) error }

// scanAll reads what a query found, to its end.
func scanAll[T any](scan func(scanner) (T, error), found *sql.Rows, err error) (out []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // Err tells
	for found.Next() {
		one, err := scan(found)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, found.Err()
}

func scanText(row scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// oldestFirst is the order of keys in every list.
func oldestFirst(a, b Record) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

func idsOf(list []Record) []string {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}
