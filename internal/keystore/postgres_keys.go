package keystore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/key"
)

func (s *postgresStore) AddKey(ctx context.Context, r Record) error {
	regime, err := marshalRegime(r.Regime)
	if err != nil {
		return fmt.Errorf("store key %s: %w", r.ID, err)
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			"INSERT INTO keys ("+keyColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
			r.ID, string(r.Kind), r.Namespace, r.Tenant, r.Agent, r.Session, r.PodUID, r.ServiceAccount, r.Note, r.SecretHash,
			r.CreatedAt, instant(r.ExpiresAt), instant(r.RevokedAt), r.RevokedFor, r.PodNamespace, regime)
		return err
	})
	if err != nil {
		return fmt.Errorf("store key %s: %w", r.ID, err)
	}
	return nil
}

func (s *postgresStore) Key(ctx context.Context, id string) (r Record, err error) {
	if !isText(id) {
		return Record{}, ErrNotFound
	}
	err = s.read(ctx, func(ctx context.Context) error {
		r, err = scanPostgresKey(s.db.QueryRowContext(ctx, "SELECT "+keyColumns+" FROM keys WHERE id = $1", id))
		return err
	})
	return oneKey(r, err, "read key")
}

func (s *postgresStore) Introspect(ctx context.Context, id string) (i Introspection, err error) {
	if !isText(id) {
		return Introspection{}, ErrNotFound
	}
	err = s.read(ctx, func(ctx context.Context) error { // pgx prepares it, once on each connection
		i, err = scanPostgresIntrospection(s.db.QueryRowContext(ctx, "SELECT "+introspectedColumns+" FROM keys WHERE id = $1", id), id)
		return err
	})
	return oneKey(i, err, "introspect key")
}

func (s *postgresStore) Keys(ctx context.Context) ([]Record, error) {
	return s.list(ctx, "ORDER BY created_at, id")
}

// list returns the keys that the rest of a SELECT says.
func (s *postgresStore) list(ctx context.Context, rest string, args ...any) ([]Record, error) {
	out, err := rows(ctx, s, scanPostgresKey, "SELECT "+keyColumns+" FROM keys "+rest, args...)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return out, nil
}

// livePostgres is the condition for keys of pods that still open a door: $1 is stillGood. The index keys_by_pod has it in
// part.
const livePostgres = "kind = 'signed' AND revoked_at IS NULL AND expires_at > $1"

// stillGood is the time at or before which a key must have expired to open no door any more.
func (s *postgresStore) stillGood() time.Time { return s.now().Add(-key.Leeway) }

func (s *postgresStore) PodKeys(ctx context.Context, podNamespace, pod string) ([]Record, error) {
	const order = " ORDER BY created_at, id"
	if pod == "" {
		return s.list(ctx, "WHERE "+livePostgres+" AND pod_namespace = $2"+order, s.stillGood(), podNamespace)
	}
	return s.list(ctx, "WHERE "+livePostgres+" AND pod_namespace = $2 AND session = $3"+order, s.stillGood(), podNamespace, pod)
}

func (s *postgresStore) PodNamespaces(ctx context.Context) ([]string, error) {
	out, err := rows(ctx, s, scanText, "SELECT DISTINCT pod_namespace FROM keys WHERE pod_namespace <> '' AND "+livePostgres+" ORDER BY pod_namespace", s.stillGood())
	if err != nil {
		return nil, fmt.Errorf("list namespaces of keys: %w", err)
	}
	return out, nil
}

func scanPostgresKey(row scanner) (Record, error) {
	var (
		r                Record
		regime           string
		expires, revoked sql.NullTime
	)
	err := row.Scan(&r.ID, &r.Kind, &r.Namespace, &r.Tenant, &r.Agent, &r.Session, &r.PodUID, &r.ServiceAccount, &r.Note,
		&r.SecretHash, &r.CreatedAt, &expires, &revoked, &r.RevokedFor, &r.PodNamespace, &regime)
	if err != nil {
		return Record{}, err
	}
	if r.Regime, err = unmarshalRegime(regime); err != nil {
		return Record{}, err
	}
	r.CreatedAt = r.CreatedAt.UTC()
	r.ExpiresAt, r.RevokedAt = fromInstant(expires), fromInstant(revoked)
	return r, nil
}

func scanPostgresIntrospection(row scanner, id string) (Introspection, error) {
	var expires, revoked sql.NullTime
	i := Introspection{ID: id}
	if err := row.Scan(&i.Kind, &i.Namespace, &i.Tenant, &i.Agent, &i.Session, &i.SecretHash, &expires, &revoked); err != nil {
		return Introspection{}, err
	}
	i.Revoked = revoked.Valid
	i.ExpiresAt, i.RevokedAt = fromInstant(expires), fromInstant(revoked)
	return i, nil
}

func instant(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: !t.IsZero()} }

func fromInstant(t sql.NullTime) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// isText says whether PostgreSQL can hold it; no key has an id that it cannot.
func isText(id string) bool { return utf8.ValidString(id) && !strings.Contains(id, "\x00") }
