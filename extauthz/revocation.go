package extauthz

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"sallyport/gateway"
	"sallyport/internal/keystore"
)

// Defaults of RevocationOptions, and bounds that are not for tuning.
const (
	DefaultRevocationTTL  = 30 * time.Second // the promise when nothing pushes: no replica honours a revoked key longer
	DefaultRevocationSize = 16384            // keys; a few hundred bytes each

	// unknownTTL and unknownSize bound what is kept of ids that do not exist, so that a flood of invented keys neither
	// asks the store each time nor grows the process.
	unknownTTL  = 2 * time.Second
	unknownSize = 4096

	// storeTimeout bounds one read of the store. A caller stops waiting when its own time is up.
	storeTimeout = 2 * time.Second
)

// KeyReader reads one key from the store: keystore.Store.
type KeyReader interface {
	Key(ctx context.Context, id string) (keystore.Record, error)
}

// RevocationOptions configures NewRevocationCache.
type RevocationOptions struct {
	TTL  time.Duration
	Size int
	Now  func() time.Time
}

// RevocationCache answers for the key store, from memory for at most TTL after a read and never past the key's own
// expiry. One read serves all who ask for the same key at once. A failed read is never kept.
//
// It is a thin layer over simplelru rather than golang-lru's expirable, which has one TTL fixed for good, reads the wall
// clock itself, and whose Add renews an entry.
type RevocationCache struct {
	store  KeyReader
	now    func() time.Time
	ttl    atomic.Int64 // nanoseconds
	flight singleflight.Group

	mu      sync.Mutex
	entries *simplelru.LRU[string, entry]
	unknown *simplelru.LRU[string, time.Time] // id → when it was found not to exist
	pushes  uint64                            // revocations heard of so far
}

type entry struct {
	status Status
	readAt time.Time // before the read began: the answer may be that old
}

// NewRevocationCache returns an empty cache over store.
func NewRevocationCache(store KeyReader, opts RevocationOptions) (*RevocationCache, error) {
	if opts.TTL < 0 {
		return nil, fmt.Errorf("revocation cache TTL %s is negative: 0 asks the store every time", opts.TTL)
	}
	entries, err := simplelru.NewLRU[string, entry](opts.Size, nil)
	if err != nil {
		return nil, fmt.Errorf("revocation cache of %d keys: %w", opts.Size, err)
	}
	unknown, err := simplelru.NewLRU[string, time.Time](unknownSize, nil)
	if err != nil {
		return nil, fmt.Errorf("cache of unknown keys: %w", err)
	}
	c := &RevocationCache{store: store, now: opts.Now, entries: entries, unknown: unknown}
	c.ttl.Store(int64(opts.TTL))
	return c, nil
}

// SetTTL changes the TTL for what is cached already too.
func (c *RevocationCache) SetTTL(ttl time.Duration) { c.ttl.Store(int64(ttl)) }

// Status implements Statuses.
func (c *RevocationCache) Status(ctx context.Context, id string) (Status, error) {
	if st, err, ok := c.cached(id); ok {
		return st, err
	}
	// The read outlives a caller that gives up: others wait for it, and the next request finds its answer.
	result := c.flight.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return c.read(ctx, id)
	})
	select {
	case <-ctx.Done():
		return Status{}, fmt.Errorf("wait for the key store: %w", context.Cause(ctx))
	case r := <-result:
		if r.Err != nil {
			return Status{}, r.Err
		}
		return r.Val.(Status), nil //nolint:forcetypeassert // read returns nothing else
	}
}

// cached answers from memory; ok is false if it has nothing fresh.
func (c *RevocationCache) cached(id string) (st Status, err error, ok bool) { //nolint:revive // ok comes last, as everywhere
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, hit := c.entries.Get(id); hit {
		if c.fresh(e, now) {
			return e.status, nil, true
		}
		c.entries.Remove(id)
		return Status{}, nil, false
	}
	if at, hit := c.unknown.Get(id); hit {
		if age := now.Sub(at); age >= 0 && age < unknownTTL {
			return Status{}, keystore.ErrNotFound, true
		}
		c.unknown.Remove(id)
	}
	return Status{}, nil, false
}

// fresh says whether an entry may still be believed. A revoked key stays revoked; everything else is good for the TTL in
// force now, whatever it was when the entry was made, and a clock that went back makes an entry stale rather than immortal.
func (c *RevocationCache) fresh(e entry, now time.Time) bool {
	if e.status.Revoked {
		return true
	}
	age := now.Sub(e.readAt)
	if age < 0 || age >= time.Duration(c.ttl.Load()) {
		return false
	}
	return e.status.Expires.IsZero() || now.Before(e.status.Expires)
}

func (c *RevocationCache) read(ctx context.Context, id string) (Status, error) {
	c.mu.Lock()
	pushes := c.pushes
	c.mu.Unlock()
	readAt := c.now()
	record, err := c.store.Key(ctx, id)
	if errors.Is(err, keystore.ErrNotFound) {
		c.mu.Lock()
		c.unknown.Add(id, readAt)
		c.mu.Unlock()
		return Status{}, keystore.ErrNotFound
	}
	if err != nil {
		return Status{}, fmt.Errorf("ask the key store: %w", err)
	}
	st := statusOf(record)
	c.mu.Lock()
	defer c.mu.Unlock()
	// A revocation that was pushed during the read may be newer than what was read: then the answer serves this once.
	if st.Revoked || pushes == c.pushes {
		c.entries.Add(id, entry{status: st, readAt: readAt})
	}
	return st, nil
}

// Revoke notes at once that a key was revoked, by this process or as the store pushed it.
func (c *RevocationCache) Revoke(id string) {
	c.flight.Forget(id) // whoever asks from now on must not be served by a read that began before
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushes++
	if e, ok := c.entries.Peek(id); ok {
		e.status.Revoked = true
		c.entries.Add(id, e)
	}
}

// Forget drops every answer, because revocations may have been missed.
func (c *RevocationCache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushes++
	c.entries.Purge()
	c.unknown.Purge()
}

func statusOf(r keystore.Record) Status {
	return Status{
		Kind:       r.Kind,
		Revoked:    r.Revoked(),
		Expires:    r.ExpiresAt,
		SecretHash: r.SecretHash,
		Identity: gateway.Identity{
			Namespace: r.Namespace, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session, KeyID: r.ID,
		},
	}
}
