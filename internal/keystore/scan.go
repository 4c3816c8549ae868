package keystore

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
)

// The columns of both engines, in the order in which they are scanned. introspectedColumns are what Introspect reads: the id is
// known.
const (
	keyColumns          = "id, kind, namespace, tenant, agent, session, pod_uid, service_account, note, secret_hash, created_at, expires_at, revoked_at, revoked_for, pod_namespace, regime"
	introspectedColumns = "kind, namespace, tenant, agent, session, secret_hash, expires_at, revoked_at"
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

// oneKey is the end of a read of one key, by its id.
func oneKey[T any](read T, err error, doing string) (T, error) {
	var none T
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return none, ErrNotFound
	case err != nil:
		return none, fmt.Errorf("%s: %w", doing, err)
	}
	return read, nil
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
