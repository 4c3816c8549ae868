package extauthz

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"sallyport/internal/key"
)

// DefaultVerifiedSize is how many verified keys are remembered, at about 400 bytes each.
const DefaultVerifiedSize = 16384

// Verifier checks a signed key's signature and claims: *key.Verifier.
type Verifier interface {
	Verify(ctx context.Context, presented string) (key.Claims, error)
}

// VerifiedCache remembers keys whose signature was verified, so that a busy agent pays for Ed25519 once. It never answers
// for a key past its expiry, and it remembers no refusal.
type VerifiedCache struct {
	next   Verifier
	now    func() time.Time
	cache  *ristretto.Cache[uint64, verified]
	hits   atomic.Uint64
	misses atomic.Uint64
}

// verified is what is needed to decide, and no more: there is one for each of many keys. It holds the whole digest: ristretto
// tells keys apart by its first eight bytes, which an attacker could make collide.
type verified struct {
	digest  [sha256.Size]byte
	owner   packedIdentity
	expires time.Time
}

func (v *verified) claims() key.Claims {
	id := v.owner.identity()
	return key.Claims{ID: id.KeyID, Namespace: id.Namespace, Tenant: id.Tenant, Agent: id.Agent, Session: id.Session, Expires: v.expires}
}

// NewVerifiedCache puts a cache of size keys in front of next. Close it in the end.
func NewVerifiedCache(next Verifier, size int64, now func() time.Time) (*VerifiedCache, error) {
	const countersPerEntry = 10 // what ristretto asks for
	cache, err := ristretto.NewCache(&ristretto.Config[uint64, verified]{
		NumCounters: countersPerEntry * size,
		MaxCost:     size,
		BufferItems: 64,
		// One key costs one, so that the size is a number of keys.
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cache of %d verified keys: %w", size, err)
	}
	return &VerifiedCache{next: next, now: now, cache: cache}, nil
}

// Recall implements Keys.
func (v *VerifiedCache) Recall(presented []byte) (key.Claims, error) {
	claims, _, err := v.recall(presented)
	if err == nil {
		v.hits.Add(1)
	}
	return claims, err
}

// Verify implements Keys. It counts no hit: whoever asks has tried Recall, and counted it there.
func (v *VerifiedCache) Verify(ctx context.Context, presented []byte) (key.Claims, error) {
	claims, at, err := v.recall(presented)
	if err != ErrNotInMemory { //nolint:errorlint // recall does not wrap it
		return claims, err
	}
	v.misses.Add(1)
	claims, err = v.next.Verify(ctx, string(presented))
	if err != nil {
		return key.Claims{}, err
	}
	v.cache.Set(at.slot, verified{digest: at.digest, owner: pack(identityOf(claims)), expires: claims.Expires}, 1)
	return claims, nil
}

// place is where a key is kept.
type place struct {
	digest [sha256.Size]byte
	slot   uint64
}

// recall returns of a key that is remembered what identifies its owner, and until when.
func (v *VerifiedCache) recall(presented []byte) (key.Claims, place, error) {
	if len(presented) > key.MaxBytes { // before hashing it
		return key.Claims{}, place{}, &key.InvalidError{Reason: key.ReasonMalformed}
	}
	at := place{digest: sha256.Sum256(presented)}
	at.slot = binary.LittleEndian.Uint64(at.digest[:])
	hit, ok := v.cache.Get(at.slot)
	if !ok || hit.digest != at.digest {
		return key.Claims{}, at, ErrNotInMemory
	}
	if !v.now().Before(hit.expires) {
		v.cache.Del(at.slot) // next says whether the leeway still covers it
		return key.Claims{}, at, ErrNotInMemory
	}
	return hit.claims(), at, nil
}

// SetSize changes how many verified keys are remembered.
func (v *VerifiedCache) SetSize(size int64) error {
	if size < 1 {
		return fmt.Errorf("cache of %d verified keys: give at least 1", size)
	}
	v.cache.UpdateMaxCost(size)
	return nil
}

// VerifiedStats is how the cache does, since the process began.
type VerifiedStats struct {
	Size         int64
	Hits, Misses uint64
}

// Stats returns the counts.
func (v *VerifiedCache) Stats() VerifiedStats {
	return VerifiedStats{Size: v.cache.MaxCost(), Hits: v.hits.Load(), Misses: v.misses.Load()}
}

// Close ends the cache's goroutines.
func (v *VerifiedCache) Close() { v.cache.Close() }
