package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Names returns names of namespaces in alphabetical order, at most limit of those that come after one. It is the only
// statement that is about no namespace: it tells what there is, and nothing that is in it.
func Names(ctx context.Context, db *sql.DB, d *Dialect, after string, limit int) (out []string, err error) {
	query, args := d.spell("SELECT name FROM namespaces WHERE name > ? ORDER BY name LIMIT ?", []any{after, limit})
	rows, err := db.QueryContext(ctx, query, args...)
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
