package extauthz

import (
	"time"
)

// shadowTTLs are the TTLs of which the cache counts what they would have cost, whatever the one in force.
var shadowTTLs = [...]time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}

// shadow is when a key would last have been read under each of the other TTLs, in nanoseconds since 1970: there is one for
// each key, and a time.Time is three times as large. Zero is never.
type shadow [len(shadowTTLs)]int64

// shadowCounts are the reads that each would have made so far.
type shadowCounts [len(shadowTTLs)]uint64

// ask counts one request for a key: a few comparisons, on every check.
func (c *shadowCounts) ask(s *shadow, now time.Time) {
	at := now.UnixNano()
	for i, ttl := range shadowTTLs {
		if age := at - s[i]; age >= int64(ttl) || age < 0 || s[i] == 0 {
			s[i] = at
			c[i]++
		}
	}
}

// lagBuckets are the upper bounds, in seconds, of the histogram of revocation lag.
var lagBuckets = [...]float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// counts is what the cache counts as it works. The cache's lock guards it.
type counts struct {
	hits, misses, unknownHits uint64
	reads, failures           uint64
	shadow                    shadowCounts
	lag                       Lag
}

// refuse notes the first refusal of a revoked key.
func (c *counts) refuse(st Status, now time.Time) {
	if st.RevokedAt.IsZero() {
		return
	}
	c.lag.observe(max(now.Sub(st.RevokedAt), 0)) // the clocks of two hosts differ
}

// Lag is how long after their revocation keys were first refused here. A key that nobody presents is not in it.
type Lag struct {
	Count   uint64
	Sum     time.Duration
	Longest time.Duration
	Buckets [len(lagBuckets)]uint64 // cumulative, for lagBuckets
}

func (l *Lag) observe(d time.Duration) {
	l.Count++
	l.Sum += d
	l.Longest = max(l.Longest, d)
	for i, bound := range lagBuckets {
		if d.Seconds() <= bound {
			l.Buckets[i]++
		}
	}
}

// Histogram returns the buckets by their upper bounds in seconds, as Prometheus wants them.
func (l *Lag) Histogram() map[float64]uint64 {
	out := make(map[float64]uint64, len(lagBuckets))
	for i, bound := range lagBuckets {
		out[bound] = l.Buckets[i]
	}
	return out
}

// Stats is how the cache does, since the process began.
type Stats struct {
	TTL           time.Duration
	Size          int // keys that have room
	Entries       int // keys that are there
	Hits          uint64
	Misses        uint64
	UnknownHits   uint64 // answers from memory that a key does not exist
	Reads         uint64 // of the store
	Failures      uint64 // of those reads
	OldestTrusted time.Duration
	Lag           Lag
	Shadow        []ShadowTTL
}

// ShadowTTL is how often the store would have been read under another TTL, on the requests seen so far.
type ShadowTTL struct {
	TTL   time.Duration
	Reads uint64
}

// Stats returns the counts. It looks at every entry for the oldest that is still trusted, so ask seldom: once a scrape.
func (c *RevocationCache) Stats() Stats {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{
		TTL: time.Duration(c.ttl.Load()), Size: c.size, Entries: c.entries.Len(),
		Hits: c.counts.hits, Misses: c.counts.misses, UnknownHits: c.counts.unknownHits,
		Reads: c.counts.reads, Failures: c.counts.failures, Lag: c.counts.lag,
	}
	for _, e := range c.entries.Values() {
		if !e.revoked && c.fresh(e, now) {
			s.OldestTrusted = max(s.OldestTrusted, c.age(e, now))
		}
	}
	for i, ttl := range shadowTTLs {
		s.Shadow = append(s.Shadow, ShadowTTL{TTL: ttl, Reads: c.counts.shadow[i]})
	}
	return s
}
