package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/sqlstore"
)

// Erase takes all that the namespace holds away. The index of words is made anew, the file is written anew, and the
// write-ahead log is emptied: what was deleted would stand in them otherwise. Other processes may use the file meanwhile.
func (s *Store) Erase(ctx context.Context, namespace string) error {
	if err := s.erase(ctx, namespace); err != nil {
		return err
	}
	if _, err := s.db.Write.ExecContext(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("write the file anew: %w", err)
	}
	return s.emptyLog(ctx)
}

func (s *Store) erase(ctx context.Context, namespace string) (err error) {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to erase: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the transaction's own error is the one that matters
		}
	}()
	num, err := find(ctx, tx, namespace)
	if err != nil || num == sqlstore.Unknown {
		return errors.Join(err, tx.Rollback())
	}
	if err := sqlstore.NewScope(ctx, tx, num, dialect).Erase(); err != nil {
		return err
	}
	if err := reindex(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit what was erased: %w", err)
	}
	return nil
}

// reindex makes the index of words anew from the events that there are.
func reindex(ctx context.Context, tx *sql.Tx) (err error) {
	if _, err := tx.ExecContext(ctx, "INSERT INTO words (words) VALUES ('delete-all')"); err != nil {
		return fmt.Errorf("empty the index: %w", err)
	}
	rows, err := tx.QueryContext(ctx, "SELECT namespace, seq, subject, predicate, value FROM events WHERE retraction = 0")
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var ns int64
		var e belief.Event
		var value []byte
		if err := rows.Scan(&ns, &e.Seq, &e.Subject, &e.Predicate, &value); err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if err := e.Value.UnmarshalJSON(value); err != nil {
			return fmt.Errorf("read a value: %w", err)
		}
		statement, args := dialect.Index(ns, e.Seq, e.SearchText())
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("index an event: %w", err)
		}
	}
	return rows.Err()
}

// emptyLog waits for those who still read what was there before.
func (s *Store) emptyLog(ctx context.Context) error {
	const patience, pause = 30 * time.Second, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var busy, pages, moved int
		err := s.db.Write.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
		if err == nil && busy == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("empty the write-ahead log, which somebody reads: erase again to finish: %w", errors.Join(err, ctx.Err()))
		case <-time.After(pause):
		}
	}
}
