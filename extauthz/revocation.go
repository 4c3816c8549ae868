package extauthz

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sallyport/gateway"
	"sallyport/internal/keystore"
	"sallyport/internal/lasting"
)

// Defaults of RevocationOptions, and bounds that are not for tuning.
const (
	DefaultRevocationTTL  = 30 * time.Second // the promise when nothing pushes: no replica honours a revoked key longer
	DefaultRevocationSize = 16384            // keys; a few hundred bytes each

	// unknownTTL and unknownSize bound what is kept of ids that do not exist, so that a flood of invented keys neither
	// asks the store each time nor grows the process.
	unknownTTL  = 2 * time.Second
	unknownSize = 4096
)

// KeyReader reads from the store what a door needs of one key: keystore.Store.
type KeyReader interface {
	Introspect(ctx context.Context, id string) (keystore.Introspection, error)
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
	store   KeyReader
	readers *lasting.Crew[*reading]
	now     func() time.Time
	began   time.Time
	ttl     atomic.Int64 // nanoseconds

	mu       sync.Mutex
	entries  *simplelru.LRU[string, *entry]
	unknown  *simplelru.LRU[string, time.Time] // id → when it was found not to exist
	readings map[string]*reading               // that whoever asks may wait for
	pushes   uint64                            // revocations heard of so far
	counts   counts
	size     int
}

// NewRevocationCache returns an empty cache over store. Close it in the end.
func NewRevocationCache(store KeyReader, opts RevocationOptions) (*RevocationCache, error) {
	if err := checkTTL(opts.TTL); err != nil {
		return nil, err
	}
	entries, err := simplelru.NewLRU[string, *entry](opts.Size, nil)
	if err != nil {
		return nil, fmt.Errorf("revocation cache of %d keys: %w", opts.Size, err)
	}
	unknown, err := simplelru.NewLRU[string, time.Time](unknownSize, nil)
	if err != nil {
		return nil, fmt.Errorf("cache of unknown keys: %w", err)
	}
	c := &RevocationCache{store: store, now: opts.Now, began: opts.Now(), entries: entries, unknown: unknown, size: opts.Size, readings: map[string]*reading{}}
	c.readers = lasting.Start(lastingReaders, c.read)
	c.ttl.Store(int64(opts.TTL))
	return c, nil
}

// Close ends the cache's goroutines; the last of them when what it reads was read, or could not be.
func (c *RevocationCache) Close() {
	c.readers.Stop()
	c.readers.Wait()
}

// SetTTL changes the TTL for what is cached already too.
func (c *RevocationCache) SetTTL(ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	c.ttl.Store(int64(ttl))
	return nil
}

// SetSize changes how many keys are kept; what has no room any more goes, the longest unused first.
func (c *RevocationCache) SetSize(size int) error {
	if size < 1 {
		return fmt.Errorf("revocation cache of %d keys: give at least 1", size)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Resize(size)
	c.size = size
	return nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < 0 {
		return fmt.Errorf("revocation cache TTL %s is negative: 0 asks the store every time", ttl)
	}
	return nil
}

// Recall implements Statuses.
func (c *RevocationCache) Recall(id string) (Status, error) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cached(id, now)
}

// Status implements Statuses.
func (c *RevocationCache) Status(ctx context.Context, id string) (Status, error) {
	now := c.now()
	c.mu.Lock()
	st, err := c.cached(id, now)
	if err != ErrNotInMemory { //nolint:errorlint // cached does not wrap it
		c.mu.Unlock()
		return st, err
	}
	c.counts.misses++
	if e, stale := c.entries.Peek(id); stale { // it stays: it knows when the other TTLs would have read
		c.counts.shadow.ask(&e.shadow, now)
	}
	r, begin := c.join(ctx, id, now)
	c.mu.Unlock()
	if begin {
		c.begin(r)
	}
	return r.wait(ctx)
}

// cached answers from memory, or with ErrNotInMemory if it has nothing fresh. It wants c.mu.
func (c *RevocationCache) cached(id string, now time.Time) (Status, error) {
	if e, hit := c.entries.Get(id); hit {
		if !c.fresh(e, now) {
			return Status{}, ErrNotInMemory
		}
		c.counts.hits++
		c.counts.shadow.ask(&e.shadow, now)
		st := e.status()
		if e.revoked && !e.refused {
			e.refused = true
			c.counts.refuse(st, now)
		}
		return st, nil
	}
	if at, hit := c.unknown.Get(id); hit {
		if age := now.Sub(at); age >= 0 && age < unknownTTL {
			c.counts.unknownHits++
			return Status{}, keystore.ErrNotFound
		}
		c.unknown.Remove(id)
	}
	return Status{}, ErrNotInMemory
}

// fresh says whether an entry may still be believed. A revoked key stays revoked; everything else is good for the TTL in
// force now, whatever it was when the entry was made, and a clock that went back makes an entry stale rather than immortal.
func (c *RevocationCache) fresh(e *entry, now time.Time) bool {
	if e.revoked {
		return true
	}
	age := c.age(e, now)
	if age < 0 || age >= time.Duration(c.ttl.Load()) {
		return false
	}
	return e.expires == never || now.UnixMicro() < int64(e.expires)
}

// age is how old an answer may be. It goes by the monotonic clock where now does.
func (c *RevocationCache) age(e *entry, now time.Time) time.Duration {
	return now.Sub(c.began) - e.readAt
}

// keep wants c.mu. A revocation that was pushed during the read may be newer than what was read: then the answer serves
// this once, unless it says revoked itself.
func (c *RevocationCache) keep(r *reading) {
	st := &r.status
	if !st.Revoked && r.pushes != c.pushes {
		return
	}
	e, known := c.entries.Peek(r.id)
	if !known {
		e = &entry{}
		c.counts.shadow.ask(&e.shadow, r.readAt)
	}
	e.set(st, r.readAt.Sub(c.began))
	if !known {
		c.entries.Add(e.owner.identity().KeyID, e) // not id, which may be a piece of a whole request
	}
	if st.Revoked && !e.refused {
		e.refused = true
		c.counts.refuse(*st, c.now())
	}
}

// Revoke notes at once that a key was revoked, by this process or as the store pushed it.
func (c *RevocationCache) Revoke(id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.readings, id) // whoever asks from now on must not be served by one that began before
	c.pushes++
	if e, ok := c.entries.Peek(id); ok {
		e.revoked, e.revokedAt = true, instantOf(at)
	}
}

// Forget drops every answer, because revocations may have been missed.
func (c *RevocationCache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.readings) // as in Revoke
	c.pushes++
	c.entries.Purge()
	c.unknown.Purge()
}

func statusOf(i keystore.Introspection) Status {
	return Status{
		State:     i.State,
		RevokedAt: i.RevokedAt,
		Identity:  gateway.Identity{Namespace: i.Namespace, Tenant: i.Tenant, Agent: i.Agent, Session: i.Session, KeyID: i.ID},
	}
}
