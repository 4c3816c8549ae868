package extauthz_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// BenchmarkStatusFromTheStore measures what the door pays for what the store knows of a key that is not remembered, with a
// caller's time limit.
func BenchmarkStatusFromTheStore(b *testing.B) {
	const keys = 2000
	s, err := keystore.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "keys.db"), time.Now)
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	ids := make([]string, keys)
	for i := range ids {
		ids[i] = key.NewID()
		check(b, s.AddKey(b.Context(), keystore.Record{
			ID: ids[i], Kind: keystore.Signed, Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-pod",
			PodNamespace: "agents", PodUID: "0b9f6f3e-5d1a-4a55-9d34-6a8f3f0c2f11", ServiceAccount: "default",
			CreatedAt: time.Now(), ExpiresAt: time.Now().Add(15 * time.Minute),
		}))
	}
	// With a TTL of nothing, each is asked about anew.
	cache, err := extauthz.NewRevocationCache(s, extauthz.RevocationOptions{Size: keys, Now: time.Now})
	check(b, err)
	b.Cleanup(cache.Close)
	ask := func(i int) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if st, err := cache.Status(ctx, ids[i%keys]); err != nil || st.Revoked {
			b.Errorf("%+v, %v", st, err)
		}
	}
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		began := cpu()
		for i := 0; b.Loop(); i++ {
			ask(i)
		}
		b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
	})
	b.Run("several at once", func(b *testing.B) {
		const callers = 8 // for each processor
		b.ReportAllocs()
		b.SetParallelism(callers)
		began := cpu()
		var next atomic.Int64 // so that no two ask about one key
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				ask(int(next.Add(1)))
			}
		})
		b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
	})
}

// cpu is what the process has used so far, in nanoseconds.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of oneself it does not fail
	return u.Utime.Nano() + u.Stime.Nano()
}

// pods answers as a store with a key for each of many pods would.
type pods struct{}

func (pods) Introspect(_ context.Context, id string) (keystore.Introspection, error) {
	return keystore.Introspection{
		State: keystore.State{Kind: keystore.Kind(strings.Clone("signed")), ExpiresAt: start.Add(time.Hour)},
		ID:    strings.Clone(id), Namespace: "agents:run-" + id[:8], Tenant: strings.Clone("agents"), Agent: "run-" + id[:8], Session: "run-" + id[:8] + "-x7k2p",
	}, nil
}

// BenchmarkRememberedKey measures what a hundred thousand keys take, each, and how long the garbage collector works for them
// on one processor.
func BenchmarkRememberedKey(b *testing.B) {
	const keys = 100_000
	for b.Loop() {
		var w clock
		cache, err := extauthz.NewRevocationCache(pods{}, extauthz.RevocationOptions{TTL: testTTL, Size: keys, Now: w.Now})
		check(b, err)
		before := heap()
		for i := range keys {
			_, err := cache.Status(b.Context(), fmt.Sprintf("%032x", i))
			check(b, err)
		}
		after := heap()
		began := cpu()
		const times = 10
		for range times {
			runtime.GC()
		}
		b.ReportMetric(float64(cpu()-began)/times/1e6, "gc-cpu-ms")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "B/key")
		b.ReportMetric(float64(after.HeapObjects-before.HeapObjects)/keys, "objects/key")
		cache.Close()
	}
}

func heap() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC() // what the first one made free
	runtime.ReadMemStats(&m)
	return m
}
