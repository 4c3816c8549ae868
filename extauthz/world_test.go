package extauthz_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is a clock that a test moves.
type clock struct{ offset atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.offset.Load())) }
func (c *clock) Advance(d time.Duration) { c.offset.Add(int64(d)) }

// countingStore counts the reads of a real key store, can be made to fail, and to hold reads back.
type countingStore struct {
	keystore.Store
	reads atomic.Int64
	down  atomic.Pointer[error]
	hold  atomic.Pointer[func()]
}

func (s *countingStore) Introspect(ctx context.Context, id string) (keystore.Introspection, error) {
	s.reads.Add(1)
	if err := s.down.Load(); err != nil {
		return keystore.Introspection{}, *err
	}
	r, err := s.Store.Introspect(ctx, id)
	if hold := s.hold.Load(); hold != nil {
		(*hold)() // after the read: what it saw may be old by the time it is told
	}
	return r, err
}

// world is the inner door over a real key store, with a clock of its own.
type world struct {
	clock
	store    *countingStore
	signer   *key.Signer
	cache    *extauthz.RevocationCache
	verified *extauthz.VerifiedCache
	door     *extauthz.Authorizer
}

const testTTL = 30 * time.Second

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{}
	real, err := keystore.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "keys.db"), w.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() }) // a test may have closed it
	w.store = &countingStore{Store: real}
	w.signer, err = key.NewSigner(t.Context(), w.store, key.SignerOptions{
		Issuer: key.DefaultIssuer, Audience: key.DefaultAudience, MaxTTL: 24 * time.Hour, Lifetime: 24 * time.Hour, Now: w.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.cache, err = extauthz.NewRevocationCache(w.store, extauthz.RevocationOptions{TTL: testTTL, Size: 100, Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cache.Close)
	w.verified, err = extauthz.NewVerifiedCache(key.NewVerifier(key.NewKeySet(w.store, w.Now), key.DefaultIssuer, key.DefaultAudience, w.Now), 100, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.verified.Close)
	w.door = extauthz.NewAuthorizer(w.verified, w.cache, w.Now)
	return w
}

// mint stores and signs a key as the exchange does.
func (w *world) mint(t testing.TB, ttl time.Duration) (id, text string) {
	t.Helper()
	now := w.Now()
	r := keystore.Record{
		ID: key.NewID(), Kind: keystore.Signed, Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "pod",
		PodUID: "uid", ServiceAccount: "default", CreatedAt: now, ExpiresAt: now.Add(ttl),
	}
	w.add(t, r)
	return r.ID, w.sign(t, r)
}

func (w *world) add(t testing.TB, r keystore.Record) {
	t.Helper()
	if err := w.store.AddKey(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (w *world) sign(t testing.TB, r keystore.Record) string {
	t.Helper()
	text, err := w.signer.Sign(key.Claims{
		ID: r.ID, Namespace: r.Namespace, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session, PodUID: r.PodUID,
		ServiceAccount: r.ServiceAccount, IssuedAt: r.CreatedAt, Expires: r.ExpiresAt,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (w *world) revoke(t testing.TB, id string) {
	t.Helper()
	if err := w.store.Revoke(t.Context(), id, "test", w.Now()); err != nil {
		t.Fatal(err)
	}
}

// ask presents a key.
func (w *world) ask(t testing.TB, text string) extauthz.Decision {
	t.Helper()
	return w.door.Decide(t.Context(), extauthz.Request{Authorization: lines("Bearer " + text)})
}

// lines are Authorization lines.
func lines(texts ...string) (out [][]byte) {
	for _, text := range texts {
		out = append(out, []byte(text))
	}
	return out
}

// together runs f n times at once and waits for all.
func together(n int, f func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(f)
	}
	wg.Wait()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
