package keystore

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

func (s *sqliteStore) Revoke(ctx context.Context, id, reason string, at time.Time) error {
	return revoke(ctx, s, id, reason, at)
}

func (s *sqliteStore) RevokeMatching(ctx context.Context, which Selector, reason string, at time.Time) ([]Record, error) {
	return revokeMatching(ctx, s, which, reason, at)
}

func (s *sqliteStore) conditions() *conditions {
	return &conditions{mark: "?", instant: func(t time.Time) any { return t.UnixMicro() }, now: s.now()}
}

// end implements revoker. Those who follow read what it notes in the same transaction.
func (s *sqliteStore) end(ctx context.Context, c *conditions, condition, reason string, at time.Time) ([]Record, error) {
	update := "UPDATE keys SET " + c.revoked(reason, at) + " WHERE " + condition + " RETURNING " + keyColumns //nolint:gosec // of our own making
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	found, err := tx.QueryContext(ctx, update, c.args...)
	ended, err := scanAll(scanKey, found, err)
	if err != nil || len(ended) == 0 {
		return nil, err
	}
	slices.SortFunc(ended, oldestFirst)
	ids, err := json.Marshal(idsOf(ended))
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO revocations (key_id) SELECT value FROM json_each(?) ORDER BY key", string(ids)); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	s.tellWatchers(ctx)
	return ended, nil
}
