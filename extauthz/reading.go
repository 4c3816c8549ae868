package extauthz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/keystore"
)

const (
	// storeTimeout bounds one read of the store. A caller stops waiting when its own time is up.
	storeTimeout = 2 * time.Second

	// lastingReaders are more than a host with a few processors keeps busy at once.
	lastingReaders = 4
)

// reading is one read of the store, for all who ask for the same key meanwhile. It outlives those who give up: others wait
// for it, and the next request finds its answer.
type reading struct {
	ctx    context.Context //nolint:containedctx // of the read, for whose length the reading lives
	cancel context.CancelFunc
	id     string
	readAt time.Time // before it begins: the answer may be that old
	pushes uint64    // revocations heard of by then

	done   chan struct{} // closed when the answer is there
	status Status
	err    error
}

// wait waits for the answer, as long as a caller wants to.
func (r *reading) wait(ctx context.Context) (Status, error) {
	select {
	case <-r.done:
		return r.status, r.err
	case <-ctx.Done():
		return Status{}, fmt.Errorf("wait for the key store: %w", context.Cause(ctx))
	}
}

// join returns the reading that a caller may wait for, or a new one, which is to be begun. It wants c.mu: whoever finds no
// reading here finds the answer of the last one in memory.
func (c *RevocationCache) join(ctx context.Context, id string, now time.Time) (r *reading, begin bool) {
	if r, ok := c.readings[id]; ok {
		return r, false
	}
	r = &reading{id: id, readAt: now, pushes: c.pushes, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	c.readings[id] = r
	return r, true
}

// read does a reading.
func (c *RevocationCache) read(r *reading) {
	defer r.cancel()
	found, err := c.store.Introspect(r.ctx, r.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(r.done)
	if c.readings[r.id] == r {
		delete(c.readings, r.id)
	}
	c.counts.reads++
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		c.entries.Remove(r.id)
		c.unknown.Add(r.id, r.readAt)
		r.err = keystore.ErrNotFound
	case err != nil:
		c.counts.failures++
		r.err = fmt.Errorf("ask the key store: %w", err)
	default:
		r.status = statusOf(found)
		c.keep(r)
	}
}

// begin has a reading done, and returns at once. One that finds all who do them busy has a goroutine of its own, which
// storeTimeout ends.
func (c *RevocationCache) begin(r *reading) {
	select {
	case c.readers.Give <- r:
	default:
		go c.read(r)
	}
}
