package key

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/periodic"
)

// Source lists the published verification keys.
type Source interface {
	VerificationKeys(ctx context.Context) ([]VerificationKey, error)
}

const (
	// refreshEvery bounds how long a withdrawn verification key is still trusted.
	refreshEvery = 30 * time.Second
	// refreshAtMost bounds how often unknown kids make the source be asked: a flood of invented ones costs one read a second.
	refreshAtMost = time.Second
	// retryAtMost is the same after a read that failed: an outage must not last longer here than it does.
	retryAtMost = 100 * time.Millisecond
	// refreshTimeout bounds one read of the source.
	refreshTimeout = 2 * time.Second
)

// KeySet is the set of published verification keys. It is swapped as a whole, so that no two requests see different
// halves of a rotation (istio#51581).
type KeySet struct {
	source Source
	now    func() time.Time
	keys   atomic.Pointer[map[string]VerificationKey]

	mu       sync.Mutex // held during a refresh: those who need it too wait for the same one
	lastRead time.Time
	lastErr  error
}

// NewKeySet returns a set that is empty until it is asked or refreshed.
func NewKeySet(source Source, now func() time.Time) *KeySet {
	s := &KeySet{source: source, now: now}
	s.keys.Store(&map[string]VerificationKey{})
	return s
}

// PublicKey implements PublicKeys. An unknown kid makes it look again, at most once a second.
func (s *KeySet) PublicKey(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	if k, ok := s.lookup(kid); ok {
		return k, nil
	}
	if err := s.refreshForUnknown(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if k, ok := s.lookup(kid); ok {
		return k, nil
	}
	return nil, &InvalidError{ReasonUnknownSigningKey}
}

func (s *KeySet) lookup(kid string) (ed25519.PublicKey, bool) {
	k, ok := (*s.keys.Load())[kid]
	if !ok || s.now().After(k.NotAfter.Add(Leeway)) {
		return nil, false
	}
	return k.Public, true
}

func (s *KeySet) refreshForUnknown(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := refreshAtMost
	if s.lastErr != nil {
		bound = retryAtMost
	}
	if since := s.now().Sub(s.lastRead); since >= 0 && since < bound {
		return s.lastErr // somebody looked a moment ago
	}
	return s.refresh(ctx)
}

// Refresh reads the source now. A failure leaves the set as it was.
func (s *KeySet) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh(ctx)
}

// refresh wants s.mu. It is not bound to the life of the request that came first, since others wait for its result.
func (s *KeySet) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	list, err := s.source.VerificationKeys(ctx)
	s.lastRead, s.lastErr = s.now(), err
	if err != nil {
		return fmt.Errorf("read verification keys: %w", err)
	}
	next := make(map[string]VerificationKey, len(list))
	for _, k := range list {
		next[k.ID] = k
	}
	if !maps.EqualFunc(next, *s.keys.Load(), sameKey) {
		s.keys.Store(&next)
	}
	return nil
}

func sameKey(a, b VerificationKey) bool {
	return a.ID == b.ID && a.NotAfter.Equal(b.NotAfter) && a.Public.Equal(b.Public)
}

// Run reads the source every half minute until ctx ends. A failure is given to report; the set stays as it was, and a
// key signed by an unknown kid is then answered with ErrUnavailable.
func (s *KeySet) Run(ctx context.Context, report func(error)) {
	periodic.Run(ctx, refreshEvery, s.Refresh, report)
}
