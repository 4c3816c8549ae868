package keystore

import (
	"context"
	"database/sql"
	"errors"

	"sallyport/internal/lasting"
)

// introspectors leaves half of a file's connections to lists and watches.
const introspectors = 4

// introspections reads keys on goroutines that last. On a caller's own, each read would start two more that only watch the
// caller's context, one in the driver and one in database/sql. So the caller watches its context itself.
type introspections struct {
	byID *sql.Stmt
	crew *lasting.Crew[question]
}

type question struct {
	id     string
	answer chan<- answer // with room for it: nobody may be there any more to take it
}

type answer struct {
	Introspection
	err error
}

func newIntrospections(byID *sql.Stmt) *introspections {
	s := &introspections{byID: byID}
	s.crew = lasting.Start(introspectors, s.answer)
	return s
}

func (s *introspections) answer(q question) {
	// What bounds it is busy_timeout, and its caller does not wait longer than it wants to.
	i, err := scanIntrospection(s.byID.QueryRowContext(context.Background(), q.id), q.id)
	q.answer <- answer{i, err}
}

var errStoreClosed = errors.New("the key store is closed")

func (s *introspections) ask(ctx context.Context, id string) (Introspection, error) {
	answered := make(chan answer, 1)
	select {
	case s.crew.Give <- question{id, answered}:
	case <-s.crew.Stopped:
		return Introspection{}, errStoreClosed
	case <-ctx.Done():
		return Introspection{}, ctx.Err()
	}
	select {
	case a := <-answered:
		return a.Introspection, a.err
	case <-ctx.Done():
		return Introspection{}, ctx.Err()
	}
}

// await returns when the goroutines have ended, after they were told to. It wants the file to be closed, so that none of them
// waits for a connection.
func (s *introspections) await() error {
	s.crew.Wait()
	return s.byID.Close()
}

func (s *sqliteStore) Introspect(ctx context.Context, id string) (Introspection, error) {
	i, err := s.introspections.ask(ctx, id)
	return oneKey(i, err, "introspect key")
}

func scanIntrospection(row scanner, id string) (Introspection, error) {
	var (
		kind             string // what has a name of its own would be scanned by reflection
		expires, revoked sql.NullInt64
	)
	i := Introspection{ID: id}
	if err := row.Scan(&kind, &i.Namespace, &i.Tenant, &i.Agent, &i.Session, &i.SecretHash, &expires, &revoked); err != nil {
		return Introspection{}, err
	}
	i.Kind, i.Revoked = Kind(kind), revoked.Valid
	i.ExpiresAt, i.RevokedAt = fromMicros(expires), fromMicros(revoked)
	return i, nil
}
