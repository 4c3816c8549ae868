package kubernetes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"sallyport/exchange"
	"sallyport/exchange/sandbox"
)

// tokenID names a token without holding it.
type tokenID [sha256.Size]byte

// flights makes one call of those that ask about the same token at the same time.
type flights struct{ group singleflight.Group }

// do waits for the answer as long as ctx lasts. The call itself does not end with the first who asked: others wait for it.
func (f *flights) do(ctx context.Context, id tokenID, bound time.Duration, ask func(context.Context) (sandbox.Subject, error)) (sandbox.Subject, error) {
	answer := f.group.DoChan(string(id[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		return ask(ctx)
	})
	select {
	case a := <-answer:
		s, _ := a.Val.(sandbox.Subject)
		return s, a.Err
	case <-ctx.Done():
		return sandbox.Subject{}, fmt.Errorf("review token: %w", errors.Join(errNoAnswer, ctx.Err()))
	}
}

const (
	// refusedFor is how long a refused token is remembered: long enough for a client that tries again in a loop, short
	// enough that nobody waits for it.
	refusedFor = 5 * time.Second
	// refusedMost bounds the memory for them. A flood of different tokens pushes the oldest out.
	refusedMost = 4096
)

// refusedTokens remembers tokens that the API server refused. Outages never get in.
type refusedTokens struct {
	now   func() time.Time
	cache *lru.Cache[tokenID, refusedToken]
}

type refusedToken struct {
	err   *exchange.RejectedError
	until time.Time
}

func newRefusedTokens(now func() time.Time) *refusedTokens {
	cache, err := lru.New[tokenID, refusedToken](refusedMost)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &refusedTokens{now: now, cache: cache}
}

func (r *refusedTokens) get(id tokenID) error {
	e, ok := r.cache.Get(id)
	if !ok {
		return nil
	}
	if !r.now().Before(e.until) {
		r.cache.Remove(id)
		return nil
	}
	return e.err
}

func (r *refusedTokens) add(id tokenID, err *exchange.RejectedError) {
	r.cache.Add(id, refusedToken{err: err, until: r.now().Add(refusedFor)})
}
