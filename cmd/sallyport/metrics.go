package main

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sallyport/internal/serve"
)

// metricsFlags say where Prometheus finds a service. Metrics hold no secrets, so that any address will do.
type metricsFlags struct {
	MetricsListen string `help:"Where to serve /metrics for Prometheus: HOST:PORT or unix:PATH. Empty for nowhere." placeholder:"ADDRESS"`
}

// metrics serves a service's metrics, with those of Go and the process; nothing if no address is given.
func (f metricsFlags) metrics(env *environment, of prometheus.Collector) ([]part, error) {
	if f.MetricsListen == "" {
		return nil, nil
	}
	l, err := serve.Listen(env.ctx, f.MetricsListen)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return []part{func(ctx context.Context) error { return serve.HTTP(ctx, l, mux, env.log) }}, nil
}
