package keystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"
)

// push is the payload of one notification: one revocation, of however many keys.
type push struct {
	From string   `json:"from"`          // the store that revoked
	N    int64    `json:"n"`             // its how manieth push
	IDs  []string `json:"ids,omitempty"` // of all the keys; none if they have no room, and are to be read by At
	At   int64    `json:"at"`            // microseconds since 1970
}

// maxPayload is below what PostgreSQL takes: less than 8000 bytes. Some 400 ids have room.
const maxPayload = 7900

// payload leaves the ids out if they are too many.
func (p push) payload() (string, error) {
	text, err := json.Marshal(p)
	if err == nil && len(text) > maxPayload {
		p.IDs = nil
		text, err = json.Marshal(p)
	}
	return string(text), err
}

func (s *postgresStore) Revoke(ctx context.Context, id, reason string, at time.Time) error {
	return revoke(ctx, s, id, reason, at)
}

func (s *postgresStore) RevokeMatching(ctx context.Context, which Selector, reason string, at time.Time) ([]Record, error) {
	return revokeMatching(ctx, s, which, reason, at)
}

func (s *postgresStore) conditions() *conditions {
	return &conditions{mark: "$", instant: func(t time.Time) any { return t }, now: s.now()}
}

// end implements revoker. It notifies everybody in the same transaction: a revocation that is not committed is not told,
// and none is committed untold.
func (s *postgresStore) end(ctx context.Context, c *conditions, condition, reason string, at time.Time) (ended []Record, err error) {
	for _, arg := range c.args {
		if text, ok := arg.(string); ok && !isText(text) {
			return nil, nil
		}
	}
	// Locked in one order, so that two who revoke the same keys do not wait for each other crosswise.
	update := "WITH due AS (SELECT id AS due_id FROM keys WHERE " + condition + " ORDER BY id FOR UPDATE) " + //nolint:gosec // of our own making
		"UPDATE keys SET " + c.revoked(reason, at) + " FROM due WHERE id = due_id RETURNING " + keyColumns
	p := push{From: s.self, At: at.UnixMicro()}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		found, err := tx.QueryContext(ctx, update, c.args...)
		if ended, err = scanAll(scanPostgresKey, found, err); err != nil || len(ended) == 0 {
			return err
		}
		slices.SortFunc(ended, oldestFirst)
		p.N, p.IDs = s.nextPush(), idsOf(ended)
		payload, err := p.payload()
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", s.channel, payload)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(ended) > 0 {
		s.tellWatchers(p)
	}
	return ended, nil
}

// revokedAt returns the ids of the keys that were revoked at a time: those of one revocation, if no other was in the same
// microsecond, whose keys may well be told twice.
func (s *postgresStore) revokedAt(ctx context.Context, at int64) ([]string, error) {
	return rows(ctx, s, scanText, "SELECT id FROM keys WHERE revoked_at = $1", time.UnixMicro(at))
}

func (s *postgresStore) nextPush() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	return s.sent
}
