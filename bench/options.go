package main

import (
	"errors"
	"os"
	"time"
)

// options is what can be chosen for a run.
type options struct {
	door        string        // path of the sallyport binary
	rounds      int           // each variant has one turn in each
	window      time.Duration // of a turn's measurement
	settle      time.Duration // before it, under the same load
	paced       time.Duration // how long latency is measured at each of the steady rates
	connections int
	streams     int    // questions at a time on each connection of `make bench-straight`
	headers     int    // in each check of `make bench-straight`, besides those that our Envoy sends
	workers     int    // of Envoy
	opa         string // path of the opa-envoy-plugin binary, or empty
	live        int    // keys in the key store
	warm        int    // keys that the warm variant sees
	remembered  int    // keys at which memory is measured, with the caches as they ship
}

func defaults() options {
	return options{
		door: "bin/sallyport", rounds: 11, window: 2 * time.Second, settle: 200 * time.Millisecond, paced: time.Second,
		connections: 16, streams: 1, workers: 1, opa: os.Getenv("OPA_ENVOY"), live: 100_000, warm: 1_000, remembered: 16_000,
	}
}

// quick is enough to see that everything works.
func (o options) quick() options {
	o.rounds, o.window, o.settle, o.paced = 2, 50*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond
	o.live, o.warm, o.remembered = 3_000, 100, 500
	return o
}

func (o options) check() error {
	if o.rounds < 1 || o.window <= 0 || o.paced <= 0 || o.connections < 1 || o.streams < 1 || o.headers < 0 || o.workers < 1 || o.live < o.remembered || o.remembered < o.warm || o.warm < 1 {
		return errors.New("rounds, time, connections, streams and workers are at least 1, and there are at least as many live keys as are seen")
	}
	return nil
}
