package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The variants, besides those of rounds.go.
const (
	namePass = "pass-through: no door"
	nameJWT  = "Envoy's own jwt_authn with its cache, which cannot revoke"
	nameCold = "cold: every key for the first time"
	nameOPA  = "OPA-Envoy, the same policy"
)

func (o options) nameWarm() string { return fmt.Sprintf("warm: %d keys, seen before", o.warm) }
func (o options) nameLive() string { return fmt.Sprintf("warm at %d live keys", o.live) }

// lanes are the variants that are compared, in the order of the table.
func (r *envoyRig) lanes() []*lane {
	allow := func(ctx context.Context, name string) (*door, error) { return r.fleet.startAllow(ctx, r.world, name) }
	out := []*lane{
		{name: namePass, keys: r.warm, filter: passThrough},
		{name: nameJWT, keys: r.warm, checks: true, filter: jwtAuthn(r.world.jwks, r.warm)},
		{name: nameAllow, keys: r.warm, filter: anonymous, start: allow},
		{name: nameAgain, keys: r.warm, filter: anonymous, start: allow},
		{name: r.nameWarm(), keys: r.warm, checks: true, knows: true, start: r.ourDoor()},
		{name: nameCold, keys: r.live, checks: true, knows: true, cold: true, start: r.ourDoor()},
		{name: r.nameLive(), keys: r.live, checks: true, knows: true, start: r.ourDoor(sized(r.live)...)},
	}
	if r.opa != "" {
		out = append(out, &lane{name: nameOPA, keys: r.warm, checks: true, knows: true, filter: joinedHeaders, start: r.startOPA})
	}
	return out
}

func (r *envoyRig) ourDoor(flags ...string) func(context.Context, string) (*door, error) {
	return func(ctx context.Context, name string) (*door, error) {
		return r.fleet.startDoor(ctx, r.options, r.world, name, flags...)
	}
}

// turn measures a lane once: as fast as it goes, and then at steady rates.
func (r *envoyRig) turn(ctx context.Context, l *lane) (figures, error) {
	before, err := r.prepare(ctx, l)
	if err != nil {
		return nil, err
	}
	watched, doorAt := []*process{l.envoy.process, r.backend}, -1
	if l.door != nil {
		doorAt = len(watched)
		watched = append(watched, l.door.process)
	}
	t, err := l.closedLoop(ctx, r.options, r.machine, l.sequence, watched...)
	if err != nil {
		return nil, err
	}
	f := t.figures(doorAt, map[string]int{cpuEnvoy: 0, cpuBackend: 1})
	for _, perSecond := range rates {
		took, err := l.openLoop(ctx, r.options, r.machine, l.sequence, perSecond)
		if err != nil {
			return nil, fmt.Errorf("at %d requests a second: %w", perSecond, err)
		}
		f[atRate(perSecond)] = float64(took.Nanoseconds()) / float64(time.Microsecond)
	}
	if l.cold {
		return f, l.door.checkMisses(ctx, before, leastReads, allReads)
	}
	return f, l.door.checkMisses(ctx, before, 0, mostReads)
}

func atRate(perSecond int) string {
	return fmt.Sprintf("median at %d requests a second, µs", perSecond)
}

// prepare makes a lane as cold, or as warm, as it says, and returns how the door does then.
func (r *envoyRig) prepare(ctx context.Context, l *lane) (stats, error) {
	switch {
	case l.cold:
		if err := r.restart(ctx, l); err != nil {
			return stats{}, err
		}
	case l.keys == r.warm: // those whose TTL has passed since the last turn are read now, not while it is measured
		if err := l.each(ctx, l.keys); err != nil {
			return stats{}, err
		}
	}
	return l.door.stats(ctx)
}

// restart replaces a lane's door by one that has seen no key, and waits until Envoy has found it.
func (r *envoyRig) restart(ctx context.Context, l *lane) (err error) {
	l.door.stop()
	if l.door, err = l.start(ctx, l.short); err != nil {
		return err
	}
	l.sequence = &sequence{keys: l.keys, once: true}
	a, err := dialHTTP(ctx, l.envoy.address, r.world.keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return l.door.await(ctx, func(ctx context.Context) error {
		// A key that is refused, so that the good ones stay unseen.
		status, err := a.status(ctx, r.world.revoked)
		if err == nil && status != http.StatusUnauthorized {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
}
