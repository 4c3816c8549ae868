package tuning

import (
	"time"

	"sallyport/extauthz"
)

// Report is what `extauthz stats` shows, as JSON on the socket. Durations are in seconds.
type Report struct {
	Since      time.Time                  `json:"since"`
	Seconds    float64                    `json:"seconds"`
	Decisions  map[extauthz.Reason]uint64 `json:"decisions"` // those that there were
	Revocation RevocationReport           `json:"revocation_cache"`
	Verified   VerifiedReport             `json:"verified_cache"`
}

// RevocationReport is about the cache of what is revoked.
type RevocationReport struct {
	TTL           float64        `json:"ttl_seconds"`
	Size          int            `json:"size"`
	Entries       int            `json:"entries"`
	HitRate       float64        `json:"hit_rate"`
	Reads         uint64         `json:"store_reads"`
	ReadsASecond  float64        `json:"store_reads_per_second"`
	Failures      uint64         `json:"store_failures"`
	OldestTrusted float64        `json:"oldest_trusted_seconds"`
	Lag           LagReport      `json:"revocation_lag"`
	OtherTTLs     []ShadowReport `json:"other_ttls"`
}

// LagReport is how long revocations took to be refused here.
type LagReport struct {
	Count   uint64  `json:"count"`
	Mean    float64 `json:"mean_seconds"`
	Longest float64 `json:"longest_seconds"`
}

// ShadowReport is what another TTL would have cost on the same requests.
type ShadowReport struct {
	TTL          float64 `json:"ttl_seconds"`
	Reads        uint64  `json:"store_reads"`
	ReadsASecond float64 `json:"store_reads_per_second"`
}

// VerifiedReport is about the cache of verified signatures.
type VerifiedReport struct {
	Size    int64   `json:"size"`
	HitRate float64 `json:"hit_rate"`
}

// Report returns how the door does.
func (d *Door) Report() Report {
	r, v := d.Revocation.Stats(), d.Verified.Stats()
	seconds := max(d.Now().Sub(d.began).Seconds(), 1)
	out := Report{
		Since: d.began.UTC(), Seconds: seconds, Decisions: map[extauthz.Reason]uint64{},
		Revocation: RevocationReport{
			TTL: r.TTL.Seconds(), Size: r.Size, Entries: r.Entries, HitRate: rate(r.Hits+r.UnknownHits, r.Misses),
			Reads: r.Reads, ReadsASecond: float64(r.Reads) / seconds, Failures: r.Failures, OldestTrusted: r.OldestTrusted.Seconds(),
			Lag: LagReport{Count: r.Lag.Count, Longest: r.Lag.Longest.Seconds()},
		},
		Verified: VerifiedReport{Size: v.Size, HitRate: rate(v.Hits, v.Misses)},
	}
	if r.Lag.Count > 0 {
		out.Revocation.Lag.Mean = r.Lag.Sum.Seconds() / float64(r.Lag.Count)
	}
	for _, s := range r.Shadow {
		out.Revocation.OtherTTLs = append(out.Revocation.OtherTTLs, ShadowReport{TTL: s.TTL.Seconds(), Reads: s.Reads, ReadsASecond: float64(s.Reads) / seconds})
	}
	for reason, n := range d.Authorizer.Decisions() {
		if n > 0 {
			out.Decisions[reason] = n
		}
	}
	return out
}

func rate(hits, misses uint64) float64 {
	if hits+misses == 0 {
		return 0
	}
	return float64(hits) / float64(hits+misses)
}
