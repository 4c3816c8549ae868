package pgstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"sallyport/internal/postgres"
	"sallyport/memory"
	"sallyport/memory/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is where the tables are, unless the address names another in search_path.
const Schema = "sallyport_memory"

// Store is an open database.
type Store struct{ db *sql.DB }

var _ memory.Store = (*Store)(nil)

// Open connects to the database at a postgres:// address, and brings the schema up to date. Many processes may do so at
// once. Its errors hold no password.
func Open(ctx context.Context, address string) (*Store, error) {
	steps, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	db, err := postgres.Open(ctx, address, postgres.Tables{Schema: Schema, Migrations: steps, Migrator: "a memory", PlanAnew: true})
	if err != nil {
		return nil, err
	}
	s := &Store{db: db.DB}
	if err := s.reindex(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// reindex indexes what was written before there was the index of words.
func (s *Store) reindex(ctx context.Context) error {
	names, err := s.listing(ctx, func(tx *sql.Tx) ([]string, error) { return sqlstore.Unindexed(ctx, tx) })
	if err != nil {
		return err
	}
	return sqlstore.Reindex(ctx, names, s.Write)
}

// Close closes the connections.
func (s *Store) Close() error { return s.db.Close() }

// Ping reads from the database.
func (s *Store) Ping(ctx context.Context) error {
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM namespaces LIMIT 1) AS one").Scan(&n); err != nil {
		return fmt.Errorf("read the memory: %w", err)
	}
	return nil
}

// Namespaces returns names of namespaces.
func (s *Store) Namespaces(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listing(ctx, func(tx *sql.Tx) ([]string, error) { return sqlstore.Names(ctx, tx, dialect, after, limit) })
}

// listing calls fn with a transaction that sees the names of all namespaces, and nothing that is in them.
func (s *Store) listing(ctx context.Context, fn func(*sql.Tx) ([]string, error)) (names []string, err error) {
	err = s.transaction(ctx, &sql.TxOptions{ReadOnly: true}, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "SELECT set_config('sallyport.listing', 'on', true)"); err != nil {
			return fmt.Errorf("begin to list namespaces: %w", err)
		}
		names, err = fn(tx)
		return err
	})
	return names, err
}

// Read calls fn with a snapshot of the namespace.
func (s *Store) Read(ctx context.Context, namespace string, fn func(memory.Reader) error) error {
	return s.transaction(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, func(tx *sql.Tx) error {
		num, err := find(ctx, tx, namespace, false)
		if err != nil {
			return err
		}
		return fn(sqlstore.NewScope(ctx, tx, num, dialect))
	})
}

// manyRecords is from how many on a write is one after which PostgreSQL has to count its tables anew. It does so by itself,
// but only some minutes later, and meanwhile it would read them as if they were nearly empty.
const manyRecords = 1000

// Write calls fn while it holds the lock of the namespace's own row: that is how writes to it wait for each other.
func (s *Store) Write(ctx context.Context, namespace string, fn func(memory.Writer) error) error {
	var added int64
	err := s.transaction(ctx, nil, func(tx *sql.Tx) error {
		num, err := find(ctx, tx, namespace, true)
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
		added = scope.Added()
		return scope.Count()
	})
	if err == nil && added >= manyRecords {
		_, _ = s.db.ExecContext(ctx, "ANALYZE events, beliefs, words, word_counts") // what was written is written, whatever comes of this
	}
	return err
}

// Extend moves the end of leases that are still of the epoch named.
func (s *Store) Extend(ctx context.Context, leases []memory.Extension) error {
	return s.transaction(ctx, nil, func(tx *sql.Tx) error {
		for _, l := range leases {
			num, err := find(ctx, tx, l.Namespace, false)
			if err != nil {
				return err
			}
			if err := sqlstore.NewScope(ctx, tx, num, dialect).Extend(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// transaction commits what fn did, unless it fails. PostgreSQL may not refuse a commit for another's sake here, so fn is
// called once.
func (s *Store) transaction(ctx context.Context, o *sql.TxOptions, fn func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, o)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // the transaction's own error is the one that matters
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// find looks the namespace's number up and opens the second wall for it, until the transaction ends.
func find(ctx context.Context, tx *sql.Tx, namespace string, toWrite bool) (int64, error) {
	var num sql.NullInt64
	if err := tx.QueryRowContext(ctx, "SELECT open_namespace($1, $2)", namespace, toWrite).Scan(&num); err != nil {
		return sqlstore.Unknown, fmt.Errorf("find the namespace: %w", err)
	}
	if !num.Valid {
		return sqlstore.Unknown, nil
	}
	return num.Int64, nil
}

// found makes the namespace, unless another does so at the same time, and locks it.
func found(ctx context.Context, tx *sql.Tx, namespace string) (int64, error) {
	if _, err := tx.ExecContext(ctx, "INSERT INTO namespaces (name) VALUES ($1) ON CONFLICT DO NOTHING", namespace); err != nil {
		return sqlstore.Unknown, fmt.Errorf("found the namespace: %w", err)
	}
	num, err := find(ctx, tx, namespace, true)
	if err == nil && num == sqlstore.Unknown {
		err = errors.New("found the namespace: it went away meanwhile")
	}
	return num, err
}
