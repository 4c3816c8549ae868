package keystore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// BenchmarkSQLiteIntrospect measures the read that a door does for each key that it has not seen, with the time limit that it
// sets, among two thousand.
func BenchmarkSQLiteIntrospect(b *testing.B) {
	const keys, limit = 2000, 2 * time.Second
	s, err := keystore.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "keys.db"), time.Now)
	ok(b, err)
	b.Cleanup(func() { ok(b, s.Close()) })
	ids := make([]string, keys)
	for i := range ids {
		ids[i] = key.NewID()
		ok(b, s.AddKey(ctx, keystore.Record{
			ID: ids[i], Kind: keystore.Signed, Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-pod",
			PodNamespace: "agents", PodUID: "0b9f6f3e-5d1a-4a55-9d34-6a8f3f0c2f11", ServiceAccount: "default",
			Regime:    keystore.Regime{Claim: "run-1", Pool: "py", Started: "warm", Keeps: []string{"memory", "disk"}},
			CreatedAt: time.Now(), ExpiresAt: time.Now().Add(15 * time.Minute),
		}))
	}
	read := func(i int) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if r, err := s.Introspect(ctx, ids[i%keys]); err != nil || r.Namespace == "" {
			b.Errorf("%+v, %v", r, err)
		}
	}
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			read(i)
		}
	})
	b.Run("several at once", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				read(i)
			}
		})
	})
}
