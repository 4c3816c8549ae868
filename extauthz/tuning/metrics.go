package tuning

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Collector collects from the door when it is scraped, so that a check pays for nothing but a counter.
func (d *Door) Collector() prometheus.Collector { return metrics{d} }

type metrics struct{ door *Door }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sallyport_extauthz_"+name, help, labels, nil)
}

var (
	decisions = describe("decisions_total", "Decisions, by their reason; \"allowed\" is the only one that lets a request pass.", "reason")
	lookups   = describe("revocation_cache_lookups_total", "Questions to the revocation cache, by how they were answered: hit, miss, unknown (a key that does not exist).", "result")
	reads     = describe("store_reads_total", "Reads of the key store.")
	failures  = describe("store_read_failures_total", "Reads of the key store that failed.")
	entries   = describe("revocation_cache_entries", "Keys in the revocation cache.")
	size      = describe("revocation_cache_size", "Keys that the revocation cache has room for.")
	ttl       = describe("revocation_cache_ttl_seconds", "How long an answer of the key store is trusted.")
	oldest    = describe("revocation_cache_oldest_trusted_seconds", "Age of the oldest \"not revoked\" that is still trusted.")
	lag       = describe("revocation_lag_seconds", "From a key's revocation to its first refusal here.")
	shadow    = describe("shadow_store_reads_total", "Reads of the key store that another TTL would have made.", "ttl")
	verified  = describe("verified_cache_lookups_total", "Questions to the cache of verified signatures.", "result")
	verSize   = describe("verified_cache_size", "Signatures that the cache has room for.")
)

// Describe implements prometheus.Collector.
func (m metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	for reason, n := range m.door.Authorizer.Decisions() {
		counter(decisions, n, string(reason))
	}
	r := m.door.Revocation.Stats()
	counter(lookups, r.Hits, "hit")
	counter(lookups, r.Misses, "miss")
	counter(lookups, r.UnknownHits, "unknown")
	counter(reads, r.Reads)
	counter(failures, r.Failures)
	gauge(entries, float64(r.Entries))
	gauge(size, float64(r.Size))
	gauge(ttl, r.TTL.Seconds())
	gauge(oldest, r.OldestTrusted.Seconds())
	ch <- prometheus.MustNewConstHistogram(lag, r.Lag.Count, r.Lag.Sum.Seconds(), r.Lag.Histogram())
	for _, s := range r.Shadow {
		counter(shadow, s.Reads, s.TTL.String())
	}
	v := m.door.Verified.Stats()
	counter(verified, v.Hits, "hit")
	counter(verified, v.Misses, "miss")
	gauge(verSize, float64(v.Size))
}
