package keystore_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"sallyport/internal/pgtest"
)

// BenchmarkPushLag measures how long after Revoke returned every one of five replicas has heard of it. One operation is
// one hundred revocations. The store that revokes is one of the five: it heard before. "all" is measured from the call.
func BenchmarkPushLag(b *testing.B) {
	const replicas, revocations = 5, 100
	address := pgtest.Start(b).Database(b)
	type hearing struct {
		id string
		at time.Time
	}
	heard := make(chan hearing, replicas*revocations)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }() // before the stores are closed
	revoker := openAt(b, address)
	for i := range replicas {
		s := revoker
		if i > 0 {
			s = openAt(b, address)
		}
		ready := make(chan struct{})
		wg.Go(func() {
			if err := s.WatchRevocations(ctx, func(id string, _ time.Time) { heard <- hearing{id, time.Now()} }, func() { close(ready) }); err != nil {
				b.Error(err)
			}
		})
		await(b, "the watch begins", ready)
	}
	var lags, all []time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range revocations {
			id := strconv.Itoa(n) + "-" + strconv.Itoa(i)
			ok(b, revoker.AddKey(ctx, static(id)))
			called := time.Now()
			ok(b, revoker.Revoke(ctx, id, "measured", called))
			returned, last := time.Now(), time.Time{}
			for range replicas {
				h := await(b, "every replica hears", heard)
				if h.id != id {
					b.Fatalf("heard %q, want %q", h.id, id)
				}
				if h.at.After(last) {
					last = h.at
				}
			}
			lags, all = append(lags, max(0, last.Sub(returned))), append(all, last.Sub(called))
		}
	}
	for name, measured := range map[string][]time.Duration{"lag": lags, "all": all} {
		slices.Sort(measured)
		for _, p := range []int{50, 99} {
			lag := measured[(len(measured)-1)*p/100]
			b.ReportMetric(float64(lag.Microseconds()), name+"-p"+strconv.Itoa(p)+"-µs")
			if lag > time.Second {
				b.Errorf("p%d is %s, more than the second that is promised", p, lag)
			}
		}
	}
}
