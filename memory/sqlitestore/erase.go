package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/memory/sqlstore"
)

// Erase takes all that the namespace holds away. The file is written anew, and the write-ahead log is emptied: what was
// deleted would stand in them otherwise. Other processes may use the file meanwhile.
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
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit what was erased: %w", err)
	}
	return nil
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
