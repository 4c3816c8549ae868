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
	"sallyport/internal/sqlite"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// sqliteStore keeps the keys of one host in one file, which several processes may share.
type sqliteStore struct {
	db             *sqlite.DB
	introspections *introspections
	now            func() time.Time

	mu       sync.Mutex
	watchers map[*sqliteWatch]struct{}
}

// cacheKiB is for a connection. Ten of them with SQLite's default would take more memory than all that extauthz keeps.
const cacheKiB = 128

func openSQLite(ctx context.Context, path string, now func() time.Time) (*sqliteStore, error) {
	schema, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return nil, fmt.Errorf("find key store schema: %w", err)
	}
	db, err := sqlite.Open(ctx, path, schema, sqlite.CacheKiB(cacheKiB))
	if err != nil {
		return nil, fmt.Errorf("open key store: %w", err)
	}
	byID, err := db.Read.PrepareContext(ctx, "SELECT "+introspectedColumns+" FROM keys WHERE id = ?")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open key store: %w", err), db.Close())
	}
	return &sqliteStore{db: db, introspections: newIntrospections(byID), now: now, watchers: map[*sqliteWatch]struct{}{}}, nil
}

func (s *sqliteStore) Close() error {
	s.introspections.crew.Stop()
	return errors.Join(s.db.Close(), s.introspections.await())
}

func (s *sqliteStore) Ping(ctx context.Context) error {
	var one int
	if err := s.db.Read.QueryRowContext(ctx, "SELECT 1 FROM sqlite_schema LIMIT 1").Scan(&one); err != nil {
		return fmt.Errorf("read key store: %w", err)
	}
	return nil
}

func (s *sqliteStore) AddKey(ctx context.Context, r Record) error {
	regime, err := marshalRegime(r.Regime)
	if err != nil {
		return fmt.Errorf("store key %s: %w", r.ID, err)
	}
	_, err = s.db.Write.ExecContext(ctx,
		"INSERT INTO keys ("+keyColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Kind, r.Namespace, r.Tenant, r.Agent, r.Session, r.PodUID, r.ServiceAccount, r.Note, r.SecretHash,
		r.CreatedAt.UnixMicro(), micros(r.ExpiresAt), micros(r.RevokedAt), r.RevokedFor, r.PodNamespace, regime)
	if err != nil {
		return fmt.Errorf("store key %s: %w", r.ID, err)
	}
	return nil
}

func (s *sqliteStore) Key(ctx context.Context, id string) (Record, error) {
	r, err := scanKey(s.db.Read.QueryRowContext(ctx, "SELECT "+keyColumns+" FROM keys WHERE id = ?", id))
	return oneKey(r, err, "read key")
}

func (s *sqliteStore) Keys(ctx context.Context) ([]Record, error) {
	return s.list(ctx, "ORDER BY created_at, id")
}

// list returns the keys that the rest of a SELECT says.
func (s *sqliteStore) list(ctx context.Context, rest string, args ...any) ([]Record, error) {
	found, err := s.db.Read.QueryContext(ctx, "SELECT "+keyColumns+" FROM keys "+rest, args...) //nolint:gosec // of our own making
	out, err := scanAll(scanKey, found, err)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return out, nil
}

func (s *sqliteStore) PublishVerificationKey(ctx context.Context, k key.VerificationKey) error {
	_, err := s.db.Write.ExecContext(ctx, "INSERT INTO verification_keys (id, public, not_after) VALUES (?, ?, ?)",
		k.ID, []byte(k.Public), k.NotAfter.UnixMicro())
	if err != nil {
		return fmt.Errorf("store verification key: %w", err)
	}
	return nil
}

func (s *sqliteStore) VerificationKeys(ctx context.Context) ([]key.VerificationKey, error) {
	found, err := s.db.Read.QueryContext(ctx,
		"SELECT id, public, not_after FROM verification_keys WHERE not_after > ? ORDER BY not_after, id", s.now().UnixMicro())
	out, err := scanAll(func(row scanner) (key.VerificationKey, error) {
		var (
			k        key.VerificationKey
			public   []byte
			notAfter int64
		)
		err := row.Scan(&k.ID, &public, &notAfter)
		k.Public, k.NotAfter = ed25519.PublicKey(public), time.UnixMicro(notAfter).UTC()
		return k, err
	}, found, err)
	if err != nil {
		return nil, fmt.Errorf("list verification keys: %w", err)
	}
	return out, nil
}

func (s *sqliteStore) Prune(ctx context.Context, before time.Time) (int64, error) {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("prune keys: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	cut := before.UnixMicro()
	pruned, err := affected(tx.ExecContext(ctx, "DELETE FROM keys WHERE expires_at < ?", cut))
	if err != nil {
		return 0, fmt.Errorf("prune keys: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM verification_keys WHERE not_after < ?", cut); err != nil {
		return 0, fmt.Errorf("prune verification keys: %w", err)
	}
	// AUTOINCREMENT never gives a number twice, so a follower needs no row to be kept for it.
	if _, err := tx.ExecContext(ctx, "DELETE FROM revocations WHERE key_id NOT IN (SELECT id FROM keys)"); err != nil {
		return 0, fmt.Errorf("prune revocations: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("prune keys: %w", err)
	}
	return pruned, nil
}

func scanKey(row scanner) (Record, error) {
	var (
		r                Record
		regime           string
		created          int64
		expires, revoked sql.NullInt64
	)
	err := row.Scan(&r.ID, &r.Kind, &r.Namespace, &r.Tenant, &r.Agent, &r.Session, &r.PodUID, &r.ServiceAccount, &r.Note,
		&r.SecretHash, &created, &expires, &revoked, &r.RevokedFor, &r.PodNamespace, &regime)
	if err != nil {
		return Record{}, err
	}
	if r.Regime, err = unmarshalRegime(regime); err != nil {
		return Record{}, err
	}
	r.CreatedAt = time.UnixMicro(created).UTC()
	r.ExpiresAt, r.RevokedAt = fromMicros(expires), fromMicros(revoked)
	return r, nil
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}
