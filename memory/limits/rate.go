package limits

import (
	"math"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

const (
	maxRate = 1_000_000 // a second
	// maxNamespaces bounds the counts that are kept. Of more namespaces at once, those that were quiet for longest begin
	// anew, with a second's worth of requests.
	maxNamespaces = 10_000
)

// Rate counts requests by namespace. It may be used by many goroutines.
type Rate struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time
	counts    *lru.Cache[string, *rate.Limiter]
}

// NewRate lets each namespace have so many requests a second, at once a second's worth of them; nil for no limit.
func NewRate(perSecond float64, now func() time.Time) *Rate {
	if perSecond <= 0 {
		return nil
	}
	counts, err := lru.New[string, *rate.Limiter](maxNamespaces)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &Rate{perSecond: rate.Limit(perSecond), burst: max(1, int(math.Ceil(perSecond))), now: now, counts: counts}
}

// Take lets one request of a namespace pass and returns 0, or returns how long to wait before it would. A nil Rate lets
// everything pass.
func (r *Rate) Take(namespace string) (wait time.Duration) {
	if r == nil {
		return 0
	}
	fresh := rate.NewLimiter(r.perSecond, r.burst)
	count, known, _ := r.counts.PeekOrAdd(namespace, fresh)
	if known {
		r.counts.Get(namespace) // it was used just now
	} else {
		count = fresh
	}
	now := r.now()
	if count.AllowN(now, 1) {
		return 0
	}
	missing := 1 - count.TokensAt(now)
	return max(time.Duration(missing/float64(r.perSecond)*float64(time.Second)), time.Millisecond)
}
