package keystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// push is the payload of one notification. PostgreSQL takes less than 8000 bytes.
type push struct {
	From string   `json:"from"` // the store that revoked
	N    int64    `json:"n"`    // its how manieth push
	IDs  []string `json:"ids"`
	At   int64    `json:"at"` // microseconds since 1970
}

// idsInPush keeps a payload well below the limit: an id has a few dozen bytes.
const idsInPush = 50

func (s *postgresStore) Revoke(ctx context.Context, id, reason string, at time.Time) error {
	if !isText(id) {
		return ErrNotFound
	}
	ended, err := s.revoke(ctx, at, "UPDATE keys SET revoked_at = $1, revoked_for = $2 WHERE id = $3 AND revoked_at IS NULL RETURNING id", at, reason, id)
	if err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	if len(ended) > 0 {
		return nil
	}
	_, err = s.Key(ctx, id)
	return err // nil: it was revoked before
}

func (s *postgresStore) RevokePod(ctx context.Context, podUID, reason string, at time.Time) ([]string, error) {
	// Locked in one order, so that two who revoke the same pod do not wait for each other crosswise.
	ended, err := s.revoke(ctx, at, "WITH due AS (SELECT id FROM keys WHERE "+livePostgres+` AND pod_uid = $2 ORDER BY id FOR UPDATE)
		UPDATE keys SET revoked_at = $3, revoked_for = $4 FROM due WHERE keys.id = due.id RETURNING keys.id`, s.stillGood(), podUID, at, reason)
	if err != nil {
		return nil, fmt.Errorf("revoke keys of pod: %w", err)
	}
	return ended, nil
}

// revoke runs an UPDATE that returns the ids of those that it ended, and notifies everybody in the same transaction: a
// revocation that is not committed is not told, and none is committed untold.
func (s *postgresStore) revoke(ctx context.Context, at time.Time, update string, args ...any) (ended []string, err error) {
	var pushes []push
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if ended, err = texts(tx.QueryContext(ctx, update, args...)); err != nil {
			return err
		}
		for ids := range slices.Chunk(ended, idsInPush) {
			pushes = append(pushes, push{From: s.self, N: s.nextPush(), IDs: ids, At: at.UnixMicro()})
		}
		return s.notify(ctx, tx, pushes)
	})
	if err != nil {
		return nil, err
	}
	for _, p := range pushes {
		s.tellWatchers(p)
	}
	return ended, nil
}

func (s *postgresStore) notify(ctx context.Context, tx *sql.Tx, pushes []push) error {
	for _, p := range pushes {
		payload, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", s.channel, string(payload)); err != nil {
			return err
		}
	}
	return nil
}

func (s *postgresStore) nextPush() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	return s.sent
}

// texts reads rows of one text each.
func texts(found *sql.Rows, err error) (out []string, _ error) {
	if err != nil {
		return nil, err
	}
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, errors.Join(err, found.Close())
		}
		out = append(out, text)
	}
	return out, errors.Join(found.Err(), found.Close())
}
