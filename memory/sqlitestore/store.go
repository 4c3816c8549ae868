// Package sqlitestore keeps a memory in one SQLite file: an append-only log of events, the beliefs they amount to beside
// it, an index of words, and the records of agents.
//
// It decides nothing: what to write is said by package memory. Every statement names the namespace it is about, whose
// number a transaction looks up once, when it begins.
package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sallyport/internal/sqlite"
	"sallyport/memory"
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
	return &Store{db: db}, nil
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
	return fn(&scope{ctx: ctx, tx: tx, ns: num})
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
	if num == unknown {
		if num, err = found(ctx, tx, namespace); err != nil {
			return err
		}
	}
	if err := fn(&scope{ctx: ctx, tx: tx, ns: num}); err != nil {
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
		_, err := tx.ExecContext(ctx, `UPDATE agents SET expires = ?
			WHERE namespace = (SELECT num FROM namespaces WHERE name = ?) AND agent = ? AND epoch = ? AND held = 1`,
			stamp(l.Expires), l.Namespace, l.Agent, l.Epoch)
		if err != nil {
			return fmt.Errorf("extend a lease: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit extended leases: %w", err)
	}
	return nil
}

// unknown is the number of a namespace that nothing was written to. No row has it.
const unknown = 0

func find(ctx context.Context, tx *sql.Tx, namespace string) (int64, error) {
	var num int64
	err := tx.QueryRowContext(ctx, "SELECT num FROM namespaces WHERE name = ?", namespace).Scan(&num)
	if errors.Is(err, sql.ErrNoRows) {
		return unknown, nil
	}
	if err != nil {
		return unknown, fmt.Errorf("find the namespace: %w", err)
	}
	return num, nil
}

func found(ctx context.Context, tx *sql.Tx, namespace string) (int64, error) {
	res, err := tx.ExecContext(ctx, "INSERT INTO namespaces (name) VALUES (?)", namespace)
	if err != nil {
		return unknown, fmt.Errorf("found the namespace: %w", err)
	}
	return res.LastInsertId()
}

// scope is one transaction on one namespace. It lives no longer than the call it was made for, which is why it may keep
// the call's context.
type scope struct {
	ctx context.Context
	tx  *sql.Tx
	ns  int64
}

var _ memory.Writer = (*scope)(nil)

func (s *scope) exec(what, query string, args ...any) error {
	if _, err := s.tx.ExecContext(s.ctx, query, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// rows calls each for every row of a query.
func (s *scope) rows(what, query string, args []any, each func(*sql.Rows) error) (err error) {
	rows, err := s.tx.QueryContext(s.ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// row scans the only row of a query; the result is false if there is none.
func (s *scope) row(what, query string, args []any, into ...any) (bool, error) {
	err := s.tx.QueryRowContext(s.ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	return true, nil
}

// layout has a fixed width, so that instants sort as text.
const layout = "2006-01-02T15:04:05.000000000Z"

func stamp(t time.Time) string { return t.UTC().Format(layout) }

func unstamp(s string) (time.Time, error) {
	t, err := time.Parse(layout, s)
	if err != nil {
		return t, fmt.Errorf("read an instant: %w", err)
	}
	return t, nil
}
