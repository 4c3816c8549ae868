package limits_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/memory/limits"
)

func TestOver(t *testing.T) {
	for _, c := range []struct {
		rule        string
		limits      limits.Limits
		held, added limits.Usage
		want        string
	}{
		{"no limits", limits.Limits{}, limits.Usage{Records: 1e9, Bytes: 1e15}, limits.Usage{Records: 1e9, Bytes: 1e15}, ""},
		{"up to the limit", limits.Limits{Records: 3, Bytes: 30}, limits.Usage{Records: 2, Bytes: 20}, limits.Usage{Records: 1, Bytes: 10}, ""},
		{"one record too many", limits.Limits{Records: 3}, limits.Usage{Records: 3}, limits.Usage{Records: 1}, "records"},
		{"one byte too many", limits.Limits{Bytes: 30}, limits.Usage{Bytes: 20}, limits.Usage{Bytes: 11}, "bytes"},
		{"what shrinks passes in a full one", limits.Limits{Records: 3, Bytes: 30}, limits.Usage{Records: 9, Bytes: 90}, limits.Usage{Records: -1, Bytes: -1}, ""},
		{"what changes nothing, too", limits.Limits{Records: 3, Bytes: 30}, limits.Usage{Records: 9, Bytes: 90}, limits.Usage{}, ""},
		{"shorter but one more is more", limits.Limits{Records: 3}, limits.Usage{Records: 3}, limits.Usage{Records: 1, Bytes: -5}, "records"},
	} {
		if got, _ := c.limits.Over(c.held, c.added); got != c.want {
			t.Errorf("%s: over %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, bad := range []limits.Limits{{Records: -1}, {Bytes: -1}, {RequestsPerSecond: -1}, {RequestsPerSecond: 1e9}} {
		if bad.Validate() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
	if err := (limits.Limits{Records: 1, Bytes: 1, RequestsPerSecond: 0.1}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestRate(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := limits.NewRate(2, func() time.Time { return now })
	take := func(namespace string, want time.Duration) {
		t.Helper()
		if got := r.Take(namespace); got != want {
			t.Errorf("%s waits %v, want %v", namespace, got, want)
		}
	}
	take("a", 0)
	take("a", 0)
	take("a", 500*time.Millisecond)
	take("a", 500*time.Millisecond) // asking in vain costs nothing
	take("b", 0)                    // nobody waits for another
	now = now.Add(500 * time.Millisecond)
	take("a", 0)
	take("a", 500*time.Millisecond)
	if limits.NewRate(0, nil).Take("a") != 0 {
		t.Error("no limit makes wait")
	}
}

func TestARateBelowOneLetsASingleRequestPass(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := limits.NewRate(0.1, func() time.Time { return now })
	if r.Take("a") != 0 {
		t.Error("the first one waits")
	}
	if got := r.Take("a"); got != 10*time.Second {
		t.Errorf("the second one waits %v", got)
	}
}

// TestRateAtOnce counts what passes of many requests at one instant, for a namespace that is new to all of them.
func TestRateAtOnce(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := limits.NewRate(10, func() time.Time { return now })
	for round := range 20 {
		var passed atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 5 {
					if r.Take(fmt.Sprint(round)) == 0 {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if passed.Load() != 10 {
			t.Fatalf("%d passed, want 10", passed.Load())
		}
	}
}
