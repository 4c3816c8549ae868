package memory

import "github.com/prometheus/client_golang/prometheus"

// metrics count what is no error of anybody's but has to be seen by who runs the server. Labels are of fixed sets.
type metrics struct {
	refusals   *prometheus.CounterVec
	embeddings *prometheus.CounterVec
	texts      *prometheus.CounterVec
	statements *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_memory_limit_refusals_total",
			Help: "Requests and writes that were refused, by the limit of the namespace that they would pass: requests, records or bytes.",
		}, []string{"limit"}),
		embeddings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_memory_embeddings_total",
			Help: "Requests to the embedding service: of a question or of statements; ok, failed, or skipped after a failure. A question without one is answered by its words.",
		}, []string{"of", "result"}),
		texts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_memory_extractions_total",
			Help: "Texts that a model was to read statements out of: ok, failed, or skipped after a failure. Whatever comes of it the text is kept.",
		}, []string{"result"}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_memory_extracted_statements_total",
			Help: "Statements that a model read out of texts: filed, or dropped because they do not pass the checks.",
		}, []string{"result"}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.refusals, m.embeddings, m.texts, m.statements}
}

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

func (m *metrics) embedded(of, result string) { m.embeddings.WithLabelValues(of, result).Inc() }

func (m *metrics) extracted(result string) { m.texts.WithLabelValues(result).Inc() }

func (m *metrics) proposed(filed, dropped int) {
	m.statements.WithLabelValues("filed").Add(float64(filed))
	m.statements.WithLabelValues("dropped").Add(float64(dropped))
}

// Collector returns what the service counts.
func (s *Service) Collector() prometheus.Collector { return s.metrics }
