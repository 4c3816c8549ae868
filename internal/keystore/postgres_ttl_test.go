package keystore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/internal/pgtest"
)

// The push channel is cut and stays so, while the store can be read: the TTL is what is left, and it holds.
func TestWithThePushChannelCutARevokedKeyIsRefusedWithinTheTTL(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	revoker, s := openAt(t, address), openAt(t, address)
	var offset atomic.Int64
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(offset.Load())) }
	cache, err := extauthz.NewRevocationCache(s, extauthz.RevocationOptions{TTL: extauthz.DefaultRevocationTTL, Size: 10, Now: now})
	ok(t, err)
	t.Cleanup(cache.Close)
	revoked := func() bool {
		t.Helper()
		st, err := cache.Status(ctx, "x")
		ok(t, err)
		return st.Revoked
	}
	h := followWith(t, s, cache.Revoke, cache.Forget)
	ok(t, revoker.AddKey(ctx, static("x")))
	if revoked() {
		t.Fatal("the key is revoked before anybody revoked it")
	}
	pgtest.Execute(t, address, cutListeners)
	if err := await(t, "the watch ends", h.ended); err == nil {
		t.Error("the watch ended without an error")
	}
	ok(t, revoker.Revoke(ctx, "x", "", now()))
	offset.Store(int64(extauthz.DefaultRevocationTTL - time.Nanosecond))
	if revoked() {
		t.Fatal("it heard all the same: the push channel was not cut")
	}
	offset.Store(int64(extauthz.DefaultRevocationTTL))
	if !revoked() {
		t.Error("it is let in after the TTL")
	}
}
