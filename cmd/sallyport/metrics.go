package main

import (
	"context"
	"net/http"
	"runtime"

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
	registry.MustRegister(of, buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return []part{func(ctx context.Context) error { return serve.HTTP(ctx, l, mux, env.log) }}, nil
}

// buildInfo says which build runs, as a label of a gauge that is always 1: to join to others, and to see a roll-out.
func buildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sallyport_build_info", Help: "Which build this is; the value is always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}
