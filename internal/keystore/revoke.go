package keystore

import (
	"context"
	"fmt"
	"time"
)

// revoker is an engine's part in ending keys.
type revoker interface {
	Key(ctx context.Context, id string) (Record, error)
	conditions() *conditions // none yet
	// end revokes the keys that a condition, written with c, is true of, and returns them, the oldest first. What is told to
	// whoever follows is committed with it.
	end(ctx context.Context, c *conditions, condition, reason string, at time.Time) ([]Record, error)
}

// revoke is Revoke of every Store.
func revoke(ctx context.Context, s revoker, id, reason string, at time.Time) error {
	c := s.conditions()
	ended, err := s.end(ctx, c, "revoked_at IS NULL AND id = "+c.arg(id), reason, at)
	if err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	if len(ended) > 0 {
		return nil
	}
	_, err = s.Key(ctx, id)
	return err // nil: it was revoked before
}

// revokeMatching is RevokeMatching of every Store.
func revokeMatching(ctx context.Context, s revoker, which Selector, reason string, at time.Time) ([]Record, error) {
	if err := which.Check(); err != nil {
		return nil, fmt.Errorf("revoke keys: %w", err)
	}
	c := s.conditions()
	ended, err := s.end(ctx, c, c.where(which), reason, at)
	if err != nil {
		return nil, fmt.Errorf("revoke keys: %w", err)
	}
	return ended, nil
}
