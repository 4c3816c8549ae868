package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Names returns names of namespaces in alphabetical order, at most limit of those that come after one. With Unindexed its
// statement is the only one that is about no namespace: it tells what there is, and nothing that is in it.
func Names(ctx context.Context, from Querier, d *Dialect, after string, limit int) ([]string, error) {
	query, args := d.spell("SELECT name FROM namespaces WHERE name > ? ORDER BY name LIMIT ?", []any{after, limit})
	return names(ctx, from, query, args)
}

// Unindexed returns the names of namespaces whose beliefs are not in the index of words yet.
func Unindexed(ctx context.Context, from Querier) ([]string, error) {
	return names(ctx, from, "SELECT name FROM namespaces WHERE indexed = 0", nil)
}

// Querier is a database or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func names(ctx context.Context, from Querier, query string, args []any) (out []string, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		out = append(out, name)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return out, nil
}
