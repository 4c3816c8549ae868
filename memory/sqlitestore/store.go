// Package sqlitestore keeps a memory in one SQLite file: an append-only log of events, the beliefs they amount to beside
// it, an index of words, and the records of agents.
//
// The statements are those of package sqlstore; here are the file, the schema and the index of words.
package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"sallyport/internal/sqlite"
	"sallyport/memory"
	"sallyport/memory/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is an open file.
type Store struct{ db *sqlite.DB }

var _ memory.Store = (*Store)(nil)

// Open opens the file at path, creates it if there is none, and brings its schema up to date.
func Open(ctx context.Context, path string) (*Store, error) {
	schema, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read the memory's schema: %w", err)
	}
	db, err := sqlite.Open(ctx, path, schema)
	if err != nil {
		return nil, fmt.Errorf("open the memory: %w", err)
	}
	s := &Store{db: db}
	if err := s.reindex(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the memory: %w", err), s.Close())
	}
	return s, nil
}

// reindex indexes what was written before there was the index of words.
func (s *Store) reindex(ctx context.Context) error {
	names, err := sqlstore.Unindexed(ctx, s.db.Read)
	if err != nil {
		return err
	}
	return sqlstore.Reindex(ctx, names, s.Write)
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Ping reads from the file.
func (s *Store) Ping(ctx context.Context) error {
	var n int
	if err := s.db.Read.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM namespaces LIMIT 1)").Scan(&n); err != nil {
		return fmt.Errorf("read the memory: %w", err)
	}
	return nil
}

// Namespaces returns names of namespaces.
func (s *Store) Namespaces(ctx context.Context, after string, limit int) ([]string, error) {
	return sqlstore.Names(ctx, s.db.Read, dialect, after, limit)
}

// Read calls fn with a snapshot of the namespace.
func (s *Store) Read(ctx context.Context, namespace string, fn func(memory.Reader) error) error {
	tx, err := s.db.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin to read the memory: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	num, err := find(ctx, tx, namespace)
	if err != nil {
		return err
	}
	return fn(sqlstore.NewScope(ctx, tx, num, dialect))
}

// Write calls fn inside the file's only write transaction.
func (s *Store) Write(ctx context.Context, namespace string, fn func(memory.Writer) error) (err error) {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to write the memory: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the transaction's own error is the one that matters
		}
	}()
	num, err := find(ctx, tx, namespace)
	if err != nil {
		return err
	}
	if num == sqlstore.Unknown {
		if num, err = found(ctx, tx, namespace); err != nil {
			return err
		}
	}
	scope := sqlstore.NewScope(ctx, tx, num, dialect)
	if err := fn(scope); err != nil {
		return err
	}
	if err := scope.Count(); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit to the memory: %w", err)
	}
	return nil
}

// Extend moves the end of leases that are still of the epoch named.
func (s *Store) Extend(ctx context.Context, leases []memory.Extension) (err error) {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to extend leases: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the transaction's own error is the one that matters
		}
	}()
	for _, l := range leases {
		num, err := find(ctx, tx, l.Namespace)
		if err != nil {
			return err
		}
		if err := sqlstore.NewScope(ctx, tx, num, dialect).Extend(l); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit extended leases: %w", err)
	}
	return nil
}

func find(ctx context.Context, tx *sql.Tx, namespace string) (int64, error) {
	var num int64
	err := tx.QueryRowContext(ctx, "SELECT num FROM namespaces WHERE name = ?", namespace).Scan(&num)
	if errors.Is(err, sql.ErrNoRows) {
		return sqlstore.Unknown, nil
	}
	if err != nil {
		return sqlstore.Unknown, fmt.Errorf("find the namespace: %w", err)
	}
	return num, nil
}

func found(ctx context.Context, tx *sql.Tx, namespace string) (int64, error) {
	res, err := tx.ExecContext(ctx, "INSERT INTO namespaces (name) VALUES (?)", namespace)
	if err != nil {
		return sqlstore.Unknown, fmt.Errorf("found the namespace: %w", err)
	}
	return res.LastInsertId()
}
