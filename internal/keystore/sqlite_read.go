package keystore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// keyReaders leaves half of a file's connections to lists and watches.
const keyReaders = 4

// keyReads reads single keys on goroutines that last. On a caller's own, each read would start two more that only watch
// the caller's context, one in the driver and one in database/sql, and would make a young stack grow, as deep as SQLite
// calls. So the caller watches its context itself.
type keyReads struct {
	byID   *sql.Stmt
	asked  chan keyRead
	closed chan struct{}
	stop   func()
	ended  sync.WaitGroup
}

type keyRead struct {
	id    string
	found chan<- keyFound // with room for the answer: nobody may be there any more to take it
}

type keyFound struct {
	record Record
	err    error
}

func newKeyReads(byID *sql.Stmt) *keyReads {
	s := &keyReads{byID: byID, asked: make(chan keyRead), closed: make(chan struct{})}
	s.stop = sync.OnceFunc(func() { close(s.closed) })
	for range keyReaders {
		s.ended.Go(s.answer)
	}
	return s
}

func (s *keyReads) answer() {
	for {
		select {
		case <-s.closed:
			return
		case read := <-s.asked:
			// What bounds it is busy_timeout, and its caller does not wait longer than it wants to.
			record, err := scanKey(s.byID.QueryRowContext(context.Background(), read.id))
			read.found <- keyFound{record, err}
		}
	}
}

var errStoreClosed = errors.New("the key store is closed")

func (s *keyReads) key(ctx context.Context, id string) (Record, error) {
	found := make(chan keyFound, 1)
	select {
	case s.asked <- keyRead{id, found}:
	case <-s.closed:
		return Record{}, errStoreClosed
	case <-ctx.Done():
		return Record{}, ctx.Err()
	}
	select {
	case f := <-found:
		return f.record, f.err
	case <-ctx.Done():
		return Record{}, ctx.Err()
	}
}

// await returns when the readers have ended, after stop. It wants the file to be closed, so that none of them waits for a
// connection.
func (s *keyReads) await() error {
	s.ended.Wait()
	return s.byID.Close()
}
