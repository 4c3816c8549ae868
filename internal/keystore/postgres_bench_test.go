package keystore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
	"sallyport/internal/pgtest"
)

// BenchmarkRevocation measures how long after a call to revoke began every one of five replicas refuses all of its keys,
// though each had just answered "not revoked" from memory. One operation is one hundred revocations of one key by its id,
// or twenty of an agent with five hundred keys.
func BenchmarkRevocation(b *testing.B) {
	for _, c := range []struct{ revocations, keys int }{{100, 1}, {20, 500}} {
		b.Run(fmt.Sprintf("keys=%d", c.keys), func(b *testing.B) {
			keys := c.keys
			doors := newDoors(b, keys)
			var everywhere, returned []time.Duration
			for n := 0; b.Loop(); n++ {
				for i := range c.revocations {
					agent := fmt.Sprintf("run-%d-%d", n, i)
					ids := doors.let(b, agent, keys)
					called := time.Now()
					if keys == 1 {
						ok(b, doors.revoker.Revoke(ctx, ids[0], "measured", called))
					} else if _, err := doors.revoker.RevokeMatching(ctx, keystore.Selector{Tenant: "agents", Agent: agent}, "measured", called); err != nil {
						b.Fatal(err)
					}
					returned = append(returned, time.Since(called))
					everywhere = append(everywhere, doors.awaitRefusals(b, keys).Sub(called))
				}
			}
			report(b, "returned", returned)
			if p99 := report(b, "refused", everywhere); p99 > time.Second {
				b.Errorf("99 in 100 are refused everywhere after %s, not within the second that is promised", p99)
			}
		})
	}
}

const replicas = 5

// doors are what five replicas of extauthz know of keys. The first is in the process that revokes.
type doors struct {
	revoker keystore.Store
	caches  []*extauthz.RevocationCache
	refused chan time.Time // when one replica refused one key
}

func newDoors(b *testing.B, keys int) *doors {
	address := pgtest.Start(b).Database(b)
	d := &doors{refused: make(chan time.Time, replicas*keys)}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range replicas {
		s := openAt(b, address)
		if i == 0 {
			d.revoker = s
		}
		cache, err := extauthz.NewRevocationCache(s, extauthz.RevocationOptions{TTL: time.Hour, Size: keys, Now: time.Now})
		ok(b, err)
		b.Cleanup(cache.Close)
		d.caches = append(d.caches, cache)
		revoked := func(id string, at time.Time) {
			cache.Revoke(id, at)
			if st, err := cache.Status(ctx, id); err != nil || !st.Revoked {
				b.Errorf("replica %d does not refuse what it heard was revoked: %+v, %v", i, st, err)
			}
			d.refused <- time.Now()
		}
		ready := make(chan struct{})
		wg.Go(func() {
			if err := s.WatchRevocations(ctx, revoked, func() { close(ready) }); err != nil {
				b.Error(err)
			}
		})
		await(b, "the watch begins", ready)
	}
	b.Cleanup(func() { cancel(); wg.Wait() }) // before the stores are closed
	return d
}

// let makes keys for an agent that every replica lets in, from memory when it is asked again.
func (d *doors) let(b *testing.B, agent string, keys int) []string {
	ids := make([]string, keys)
	for i := range ids {
		ids[i] = key.NewID()
		r := static(ids[i])
		r.Namespace = "agents:" + agent
		ok(b, d.revoker.AddKey(ctx, r))
		for n, cache := range d.caches {
			if st, err := cache.Status(ctx, ids[i]); err != nil || st.Revoked {
				b.Fatalf("replica %d: %+v, %v", n, st, err)
			}
		}
	}
	return ids
}

// awaitRefusals returns when the last replica refused the last key.
func (d *doors) awaitRefusals(b *testing.B, keys int) (last time.Time) {
	for range replicas * keys {
		if at := await(b, "every replica refuses", d.refused); at.After(last) {
			last = at
		}
	}
	return last
}

func report(b *testing.B, name string, measured []time.Duration) time.Duration {
	slices.Sort(measured)
	percentile := func(p int) time.Duration { return measured[(len(measured)-1)*p/100] }
	for unit, worst := range map[string]time.Duration{"p50-ms": percentile(50), "p99-ms": percentile(99), "max-ms": percentile(100)} {
		b.ReportMetric(worst.Seconds()*1000, name+"-"+unit) //nolint:mnd // milliseconds in a second
	}
	return percentile(99)
}
