package keystore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

func (s *sqliteStore) Revoke(ctx context.Context, id, reason string, at time.Time) error {
	ended, err := s.revoke(ctx, "UPDATE keys SET revoked_at = ?, revoked_for = ? WHERE id = ? AND revoked_at IS NULL RETURNING "+keyColumns,
		at.UnixMicro(), reason, id)
	if err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	if len(ended) > 0 {
		return nil
	}
	_, err = s.Key(ctx, id)
	return err // nil: it was revoked before
}

func (s *sqliteStore) RevokeMatching(ctx context.Context, which Selector, reason string, at time.Time) ([]Record, error) {
	if err := which.Check(); err != nil {
		return nil, fmt.Errorf("revoke keys: %w", err)
	}
	c := conditions{mark: "?", instant: func(t time.Time) any { return t.UnixMicro() }}
	condition := c.where(which, s.now())
	ended, err := s.revoke(ctx, "UPDATE keys SET revoked_at = "+c.arg(at.UnixMicro())+", revoked_for = "+c.arg(reason)+
		" WHERE "+condition+" RETURNING "+keyColumns, c.args...)
	if err != nil {
		return nil, fmt.Errorf("revoke keys: %w", err)
	}
	return ended, nil
}

// revoke runs an UPDATE that returns those that it ended, and notes them for whoever follows in the same transaction.
func (s *sqliteStore) revoke(ctx context.Context, update string, args ...any) ([]Record, error) {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	found, err := tx.QueryContext(ctx, update, args...)
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
