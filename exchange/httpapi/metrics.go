package httpapi

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// newAnswers counts answers by route, status and reason. A missing permission in the cluster, for one, is the reason
// "not_permitted"; the log names the verb and the resource.
func newAnswers() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sallyport_exchange_answers_total",
		Help: "Answers, by route, status and, for refusals, the reason in one word.",
	}, []string{"route", "status", "reason"})
}

// count counts one answer. Routes and reasons are of fixed sets, so that nobody can make the process grow by asking.
func (h *Handler) count(route string, status int, reason string) {
	h.answers.WithLabelValues(route, strconv.Itoa(status), reason).Inc()
}

// statusWriter sees the status of a good answer go by.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Collector returns what the handler counts.
func (h *Handler) Collector() prometheus.Collector { return h.answers }
