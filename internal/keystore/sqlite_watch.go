package keystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// watchEvery is how often the file's data version is read: a pragma that touches no table, so that a revocation by
// another process is seen in a tenth of a second at next to no cost.
const watchEvery = 100 * time.Millisecond

// WatchRevocations implements Store. SQLite cannot notify, but a connection can see that another one committed (PRAGMA
// data_version), in this process or in another one on the host; only then are the new revocations read. What this very
// store revokes is told before Revoke returns.
func (s *sqliteStore) WatchRevocations(ctx context.Context, revoked func(id string, at time.Time), resync func()) (err error) {
	w := &sqliteWatch{tell: revoked}
	if w.conn, err = s.db.Read.Conn(ctx); err != nil {
		return fmt.Errorf("watch revocations: %w", err)
	}
	defer func() { err = errors.Join(err, w.conn.Close()) }()
	if err := w.start(ctx); err != nil {
		return fmt.Errorf("watch revocations: %w", err)
	}
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	resync()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := w.poll(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch revocations: %w", err)
		}
	}
}

// tellWatchers makes the watchers of this process look now. One that cannot looks again by itself, or ends and is missed.
func (s *sqliteStore) tellWatchers(ctx context.Context) {
	s.mu.Lock()
	watchers := slices.Collect(maps.Keys(s.watchers))
	s.mu.Unlock()
	for _, w := range watchers {
		_ = w.poll(ctx)
	}
}

type sqliteWatch struct {
	conn *sql.Conn
	tell func(id string, at time.Time)

	mu      sync.Mutex // held while it looks, so that each revocation is told once
	version int64      // of the file, as this connection saw it last
	seq     int64      // of the last revocation told
}

func (w *sqliteWatch) start(ctx context.Context) error {
	if err := w.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&w.version); err != nil {
		return err
	}
	return w.conn.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM revocations").Scan(&w.seq)
}

func (w *sqliteWatch) poll(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var version int64
	if err := w.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
		return err
	}
	if version == w.version {
		return nil
	}
	rows, err := w.conn.QueryContext(ctx, "SELECT r.seq, r.key_id, coalesce(k.revoked_at, 0) FROM revocations r LEFT JOIN keys k ON k.id = r.key_id WHERE r.seq > ? ORDER BY r.seq", w.seq)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var (
			seq, at int64
			id      string
		)
		if err := rows.Scan(&seq, &id, &at); err != nil {
			return err
		}
		w.tell(id, time.UnixMicro(at).UTC())
		w.seq = seq
	}
	if err := rows.Err(); err != nil {
		return err
	}
	w.version = version
	return nil
}
