package pgstore

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/memory/sqlstore"
)

// Erase takes all that the namespace holds away, and has PostgreSQL clean the tables up. Its write-ahead log and backups
// are the operator's to let go of.
func (s *Store) Erase(ctx context.Context, namespace string) error {
	err := s.transaction(ctx, nil, func(tx *sql.Tx) error {
		num, err := find(ctx, tx, namespace, true)
		if err != nil || num == sqlstore.Unknown {
			return err
		}
		return sqlstore.NewScope(ctx, tx, num, dialect).Erase()
	})
	if err != nil {
		return err
	}
	for _, table := range append(sqlstore.Tables(), "namespaces") {
		if _, err := s.db.ExecContext(ctx, "VACUUM "+table); err != nil {
			return fmt.Errorf("clean up %s: %w", table, err)
		}
	}
	return nil
}
