package keystore

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/postgres"
)

//go:embed migrations/postgres/*.sql
var postgresMigrations embed.FS

// PostgresSchema is where the tables are, unless the address names another in search_path.
const PostgresSchema = "sallyport_keys"

// postgresBound is how long one call may take at most, whatever its caller grants; a sandbox would rather ask again.
const postgresBound = 5 * time.Second

// postgresStore keeps the keys of as many replicas as one likes.
type postgresStore struct {
	db      *postgres.DB
	now     func() time.Time
	channel string // where revocations are notified: named as the schema, so that two stores in one database are apart
	self    string // tells this store's own notifications from those of others

	mu       sync.Mutex
	closed   bool
	sent     int64 // revocations notified so far
	watchers map[*postgresWatch]struct{}
}

func openPostgres(ctx context.Context, address string, now func() time.Time) (*postgresStore, error) {
	steps, err := fs.Sub(postgresMigrations, "migrations/postgres")
	if err != nil {
		return nil, fmt.Errorf("find key store schema: %w", err)
	}
	db, err := postgres.Open(ctx, address, postgres.Tables{Schema: PostgresSchema, Migrations: steps, Migrator: "an exchange"})
	if err != nil {
		return nil, fmt.Errorf("open key store: %w", err)
	}
	s := &postgresStore{db: db, now: now, self: key.NewID(), watchers: map[*postgresWatch]struct{}{}}
	if err := db.QueryRowContext(ctx, "SELECT current_schema()").Scan(&s.channel); err != nil {
		return nil, errors.Join(fmt.Errorf("open key store: %w", err), db.Close())
	}
	return s, nil
}

// Close ends the watches too.
func (s *postgresStore) Close() error {
	s.mu.Lock()
	s.closed = true
	for w := range s.watchers {
		w.stop()
	}
	s.mu.Unlock()
	return s.db.Close()
}

// read calls fn, and once more if its connection turned out to be lost: reading twice does no harm, and after an outage
// the first caller is answered.
func (s *postgresStore) read(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, postgresBound)
	defer cancel()
	err := fn(ctx)
	if postgres.Lost(err) {
		s.db.DropIdle()
		err = fn(ctx)
	}
	return err
}

// write commits what fn did, unless it fails. Only the beginning is tried twice: nothing is written by then.
func (s *postgresStore) write(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, postgresBound)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, nil)
	if postgres.Lost(err) {
		s.db.DropIdle()
		tx, err = s.db.BeginTx(ctx, nil)
	}
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Ping reads from the table that the door depends on.
func (s *postgresStore) Ping(ctx context.Context) error {
	err := s.read(ctx, func(ctx context.Context) error {
		return s.db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM keys LIMIT 1) AS one").Scan(new(int))
	})
	if err != nil {
		return fmt.Errorf("read key store: %w", err)
	}
	return nil
}

func (s *postgresStore) PublishVerificationKey(ctx context.Context, k key.VerificationKey) error {
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO verification_keys (id, public, not_after) VALUES ($1, $2, $3)", k.ID, []byte(k.Public), k.NotAfter)
		return err
	})
	if err != nil {
		return fmt.Errorf("store verification key: %w", err)
	}
	return nil
}

func (s *postgresStore) VerificationKeys(ctx context.Context) ([]key.VerificationKey, error) {
	out, err := rows(ctx, s, func(row scanner) (key.VerificationKey, error) {
		var (
			k      key.VerificationKey
			public []byte
		)
		err := row.Scan(&k.ID, &public, &k.NotAfter)
		k.Public, k.NotAfter = ed25519.PublicKey(public), k.NotAfter.UTC()
		return k, err
	}, "SELECT id, public, not_after FROM verification_keys WHERE not_after > $1 ORDER BY not_after, id", s.now())
	if err != nil {
		return nil, fmt.Errorf("list verification keys: %w", err)
	}
	return out, nil
}

func (s *postgresStore) Prune(ctx context.Context, before time.Time) (pruned int64, err error) {
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if pruned, err = affected(tx.ExecContext(ctx, "DELETE FROM keys WHERE expires_at < $1", before)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM verification_keys WHERE not_after < $1", before)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("prune keys: %w", err)
	}
	return pruned, nil
}

// rows reads all rows of a SELECT.
func rows[T any](ctx context.Context, s *postgresStore, scan func(scanner) (T, error), query string, args ...any) (out []T, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		found, err := s.db.QueryContext(ctx, query, args...)
		out, err = scanAll(scan, found, err)
		return err
	})
	return out, err
}
