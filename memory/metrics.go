package memory

import "github.com/prometheus/client_golang/prometheus"

// metrics count what is no error of anybody's but has to be seen by who runs the server. Labels are of fixed sets.
type metrics struct {
	refusals *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_memory_limit_refusals_total",
			Help: "Requests and writes that were refused, by the limit of the namespace that they would pass: requests, records or bytes.",
		}, []string{"limit"}),
	}
}

func (m *metrics) all() []prometheus.Collector { return []prometheus.Collector{m.refusals} }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}

func (m *metrics) refused(limit string) { m.refusals.WithLabelValues(limit).Inc() }

// Collector returns what the service counts.
func (s *Service) Collector() prometheus.Collector { return s.metrics }
