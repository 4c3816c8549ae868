package keystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A connection that was quiet for quietFor is asked whether it still lives, and has answerWithin to say so: that long,
// together, may one that was cut without a word go unnoticed.
const (
	quietFor     = time.Second
	answerWithin = 2 * time.Second
)

// inOrderWithin is how long Revoke lets its own notification come back from the server, which says it in order with those
// of others; then it tells by itself.
const inOrderWithin = 100 * time.Millisecond

// WatchRevocations implements Store, on a connection of its own that listens. It returns an error as soon as that
// connection is lost; the next watch calls resync, and nothing that was missed between is believed. What this very store
// revokes is told before Revoke returns.
func (s *postgresStore) WatchRevocations(ctx context.Context, revoked func(id string, at time.Time), resync func()) error {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	w := &postgresWatch{tell: revoked, stop: stop, self: s.self, met: map[int64]struct{}{}, awaited: map[int64]chan struct{}{}}
	err := s.watch(watch, w, resync)
	switch {
	case ctx.Err() != nil:
		return nil
	case watch.Err() != nil:
		err = errors.New("the key store was closed")
	}
	return fmt.Errorf("watch revocations: %w", err)
}

func (s *postgresStore) watch(ctx context.Context, w *postgresWatch, resync func()) error {
	conn, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// ctx may be over; the server sees the end of the connection in any case.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if !s.join(w, resync) {
		return errors.New("the key store was closed")
	}
	defer s.leave(w)
	for {
		payload, err := next(ctx, conn)
		if err != nil {
			return err
		}
		if payload == "" {
			continue
		}
		var p push
		if err := json.Unmarshal([]byte(payload), &p); err != nil {
			return errors.New("a notification cannot be read") // what it revoked is unknown: the next watch forgets everything
		}
		if len(p.IDs) == 0 {
			if p.IDs, err = s.revokedAt(ctx, p.At); err != nil {
				return fmt.Errorf("read what was revoked: %w", err)
			}
		}
		w.hear(p)
	}
}

func (s *postgresStore) listen(ctx context.Context) (*pgx.Conn, error) {
	bounded, cancel := context.WithTimeout(ctx, postgresBound)
	defer cancel()
	conn, err := s.db.Dial(bounded)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(bounded, "LISTEN "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
		defer cancel()
		return nil, errors.Join(err, conn.Close(closing))
	}
	return conn, nil
}

// next waits for a notification; after a while without one it makes sure of the connection and returns nothing.
func next(ctx context.Context, conn *pgx.Conn) (payload string, err error) {
	quiet, cancel := context.WithTimeout(ctx, quietFor)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	if err == nil {
		return n.Payload, nil
	}
	if ctx.Err() != nil || quiet.Err() == nil {
		return "", err
	}
	answer, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return "", conn.Ping(answer)
}

// join makes w one that is told. It resyncs first of all, and after it began to listen: what was revoked before that is
// read from the store, what is revoked after it is heard.
func (s *postgresStore) join(w *postgresWatch, resync func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.mu.Lock()
	open := !s.closed
	if open {
		s.watchers[w] = struct{}{}
	}
	s.mu.Unlock()
	if open {
		resync()
	}
	return open
}

func (s *postgresStore) leave(w *postgresWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// tellWatchers returns when those of this process have heard what this store committed.
func (s *postgresStore) tellWatchers(p push) {
	s.mu.Lock()
	watchers := slices.Collect(maps.Keys(s.watchers))
	s.mu.Unlock()
	end := time.After(inOrderWithin)
	for _, w := range watchers {
		select {
		case <-w.arrival(p.N):
		case <-end:
			end = closed // of the others nobody waits either
		}
		w.hear(p)
	}
}

// closed is a time that has come.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

type postgresWatch struct {
	tell func(id string, at time.Time)
	stop func()
	self string

	mu      sync.Mutex              // held while it tells
	met     map[int64]struct{}      // own pushes that were heard in one of the two ways and are expected in the other
	awaited map[int64]chan struct{} // own pushes that Revoke waits for; closed when they are heard
}

// arrival is closed when one of this store's own pushes was heard.
func (w *postgresWatch) arrival(n int64) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan struct{})
	if _, met := w.met[n]; met {
		close(c)
	} else {
		w.awaited[n] = c
	}
	return c
}

// hear tells a push once. One of this store's own comes twice, from the server and from Revoke, in either order; both are
// needed, since a commit may succeed whose answer is lost.
func (w *postgresWatch) hear(p push) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.From == w.self {
		if _, again := w.met[p.N]; again {
			delete(w.met, p.N)
			return
		}
		w.met[p.N] = struct{}{}
		if c := w.awaited[p.N]; c != nil {
			delete(w.awaited, p.N)
			defer close(c)
		}
	}
	for _, id := range p.IDs {
		w.tell(id, time.UnixMicro(p.At).UTC())
	}
}
