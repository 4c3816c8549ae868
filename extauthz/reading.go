package extauthz

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// readers do readings on goroutines that last: on one that has just begun, the stack would have to grow each time, as deep
// as a database calls. A reading that finds all of them busy has a goroutine of its own, which ends with it.
type readers struct {
	read  func(*reading)
	free  chan *reading
	stop  chan struct{}
	ended sync.WaitGroup
	once  sync.Once
}

func startReaders(read func(*reading)) *readers {
	s := &readers{read: read, free: make(chan *reading), stop: make(chan struct{})}
	for range lastingReaders {
		s.ended.Go(s.run)
	}
	return s
}

func (s *readers) run() {
	for {
		select {
		case r := <-s.free:
			s.read(r)
		case <-s.stop:
			return
		}
	}
}

// begin returns at once.
func (s *readers) begin(r *reading) {
	select {
	case s.free <- r:
	default:
		go s.read(r) // storeTimeout ends it
	}
}

func (s *readers) close() {
	s.once.Do(func() { close(s.stop) })
	s.ended.Wait()
}
