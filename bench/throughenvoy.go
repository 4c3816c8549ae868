package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// More figures of a turn.
const (
	cpuEnvoy   = "CPU of Envoy, µs a request"
	cpuBackend = "CPU of the backend, µs a request"
)

// rates are how many requests a second latency is measured at.
var rates = []int{500, 2000}

// envoyRig is what `make bench-envoy` measures with.
type envoyRig struct {
	*rig
	behind  string // the backend's socket
	backend *process
}

// lane is one variant's way: an Envoy, and what it asks.
type lane struct {
	name   string
	keys   int                                                   // how many take turns
	checks bool                                                  // whoever has no key is refused
	knows  bool                                                  // whoever has a revoked key is, too
	cold   bool                                                  // what is asked starts anew for each turn, and no key is used twice
	filter changeFilter                                          // nil: as it ships
	start  func(ctx context.Context, name string) (*door, error) // what Envoy asks; nil: nobody

	short string // names its sockets
	envoy *runningEnvoy
	door  *door
	askers
	sequence *sequence
}

type changeFilter func([]*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error)

// throughEnvoy measures the door behind a real Envoy, beside other ways, and returns what is to be printed.
func throughEnvoy(ctx context.Context, o options) (page string, err error) {
	base, err := newRig(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, base.close()) }()
	r := &envoyRig{rig: base, behind: base.world.socket("backend")}
	if r.backend, err = r.fleet.startSelf(ctx, backend, r.behind); err != nil {
		return "", err
	}
	lanes := r.lanes()
	variants := make([]*variant, len(lanes))
	for i, l := range lanes {
		log.Printf("starting %s", l.name)
		l.short = fmt.Sprintf("lane%d", i)
		if err := r.open(ctx, l); err != nil {
			return "", fmt.Errorf("%s: %w", l.name, err)
		}
		variants[i] = &variant{name: l.name, turn: func(ctx context.Context) (figures, error) { return r.turn(ctx, l) }}
	}
	if err := play(ctx, o.rounds, variants); err != nil {
		return "", err
	}
	return r.report(variants), nil
}

// open starts a lane's processes and makes sure that it does what its figures are taken for.
func (r *envoyRig) open(ctx context.Context, l *lane) (err error) {
	if l.start != nil {
		if l.door, err = l.start(ctx, l.short); err != nil {
			return err
		}
	}
	if l.envoy, err = r.startEnvoy(ctx, l.short, r.world.socket(l.short), r.behind, l.filter); err != nil {
		return err
	}
	if err := r.checkStatuses(ctx, l); err != nil {
		return err
	}
	if l.askers, err = dialAll(r.connections, func() (asker, error) { return dialHTTP(ctx, l.envoy.address, r.world.keys) }); err != nil {
		return err
	}
	l.sequence = &sequence{keys: l.keys}
	if l.cold {
		return nil
	}
	return l.each(ctx, l.keys)
}

// checkStatuses asks with a good key, without one and with a revoked one.
func (r *envoyRig) checkStatuses(ctx context.Context, l *lane) (err error) {
	a, err := dialHTTP(ctx, l.envoy.address, r.world.keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	refusedIf := func(refused bool) int {
		if refused {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	}
	for _, c := range []struct {
		what, key string
		want      int
	}{{"a good key", r.world.keys[0], http.StatusOK}, {"no key", "", refusedIf(l.checks)}, {"a revoked key", r.world.revoked, refusedIf(l.knows)}} {
		switch got, err := a.status(ctx, c.key); {
		case err != nil:
			return fmt.Errorf("%s: %w", c.what, err)
		case got != c.want:
			return fmt.Errorf("%s is answered %d, not %d", c.what, got, c.want)
		}
	}
	return nil
}
