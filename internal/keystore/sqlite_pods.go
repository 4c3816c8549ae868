package keystore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sallyport/internal/key"
)

// live is the condition for keys of pods that still open a door; the index keys_by_pod has it in part.
const live = "kind = 'signed' AND revoked_at IS NULL AND expires_at > ?"

// stillGood is the time at or before which a key must have expired to open no door any more.
func (s *sqliteStore) stillGood() int64 { return s.now().Add(-key.Leeway).UnixMicro() }

func (s *sqliteStore) PodKeys(ctx context.Context, podNamespace, pod string) ([]Record, error) {
	const order = " ORDER BY created_at, id"
	if pod == "" {
		return s.list(ctx, "WHERE pod_namespace = ? AND "+live+order, podNamespace, s.stillGood())
	}
	return s.list(ctx, "WHERE pod_namespace = ? AND session = ? AND "+live+order, podNamespace, pod, s.stillGood())
}

func (s *sqliteStore) PodNamespaces(ctx context.Context) ([]string, error) {
	rows, err := s.db.Read.QueryContext(ctx,
		"SELECT DISTINCT pod_namespace FROM keys WHERE pod_namespace <> '' AND "+live+" ORDER BY pod_namespace", s.stillGood())
	if err != nil {
		return nil, fmt.Errorf("list namespaces of keys: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list namespaces of keys: %w", err)
		}
		out = append(out, name)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list namespaces of keys: %w", err)
	}
	return out, nil
}

func (s *sqliteStore) RevokePod(ctx context.Context, podUID, reason string, at time.Time) ([]string, error) {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("revoke keys of pod: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	rows, err := tx.QueryContext(ctx,
		"UPDATE keys SET revoked_at = ?, revoked_for = ? WHERE pod_uid = ? AND "+live+" RETURNING id",
		at.UnixMicro(), reason, podUID, s.stillGood())
	if err != nil {
		return nil, fmt.Errorf("revoke keys of pod: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("revoke keys of pod: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("revoke keys of pod: %w", err)
	}
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, "INSERT INTO revocations (key_id) VALUES (?)", id); err != nil {
			return nil, fmt.Errorf("revoke keys of pod: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("revoke keys of pod: %w", err)
	}
	if len(ids) > 0 {
		s.tellWatchers(ctx)
	}
	return ids, nil
}

// marshalRegime gives an empty text for one of which nothing is known.
func marshalRegime(r Regime) (string, error) {
	if !r.Known() {
		return "", nil
	}
	text, err := json.Marshal(r)
	return string(text), err
}

func unmarshalRegime(text string) (r Regime, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}
