package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"google.golang.org/protobuf/proto"
)

// The figures of a turn.
const (
	cpuAuth = "CPU of the auth process, µs a check"
	rate    = "answers a second"
)

// straightRig is what `make bench` measures with.
type straightRig struct {
	options
	fleet   *fleet
	machine *machine
	world   *world
	checks  [][]byte // one a key
	noKey   []byte
	revoked []byte
}

// straight measures the door without Envoy.
func straight(ctx context.Context, o options) error {
	return measureStraight(ctx, o, os.Stdout, os.Stderr)
}

func measureStraight(ctx context.Context, o options, out, progress io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := &fleet{}
	r := &straightRig{options: o, fleet: f, machine: &machine{fleet: f}}
	load, before, err := r.machine.rest(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "minting %d keys\n", o.live) //nolint:errcheck // only to be watched
	if r.world, err = newWorld(ctx, o.live); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.world.remove()) }()
	defer f.stopAll()
	if err := r.encode(); err != nil {
		return err
	}
	fmt.Fprintln(progress, "filling caches") //nolint:errcheck // only to be watched
	memory, err := r.memory(ctx)
	if err != nil {
		return err
	}
	variants, err := r.variants(ctx)
	if err != nil {
		return err
	}
	live := variants[len(variants)-1]
	if err := play(ctx, o.rounds, variants, progress); err != nil {
		return err
	}
	memory.live = live.of(rss).high
	if err := r.report(out, variants, memory); err != nil {
		return err
	}
	return r.machine.conditions(out, before, load)
}

// rest looks at the machine before anything is done.
func (m *machine) rest(ctx context.Context, o options) (load string, s span, err error) {
	load = loadAverage()
	r, err := m.read()
	if err != nil {
		return load, s, err
	}
	if err := pause(ctx, o.window); err != nil {
		return load, s, err
	}
	s, err = m.since(r)
	return load, s, err
}

func (r *straightRig) encode() (err error) {
	if r.checks, err = encodeChecks(r.world.keys); err != nil {
		return err
	}
	revoked, err := encodeChecks([]string{r.world.revoked})
	if err != nil {
		return err
	}
	r.revoked = revoked[0]
	check, err := recorded()
	if err != nil {
		return err
	}
	present(check, "", "1b6d4e0c-52a7-4f39-9c81-000000000000")
	r.noKey, err = proto.Marshal(check)
	return err
}

func (r *straightRig) dial(socket string) (askers, error) {
	return dialAll(r.connections, func() (asker, error) { return dialGRPC(socket, r.checks) })
}

// checkAnswers makes sure that a server does what its figures are taken for. One that checks refuses whoever has no key, or
// a revoked one.
func (r *straightRig) checkAnswers(ctx context.Context, socket string, checks bool) (err error) {
	a, err := dialGRPC(socket, r.checks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.ask(ctx, 0); err != nil {
		return fmt.Errorf("a good key: %w", err)
	}
	for what, check := range map[string][]byte{"no key": r.noKey, "a revoked key": r.revoked} {
		switch err := a.send(ctx, check); {
		case checks && err == nil:
			return fmt.Errorf("%s was let through", what)
		case err != nil && (!checks || !errors.Is(err, errRefused)):
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

const (
	nameAllow  = "always-allow (stock grpc-go, checks nothing)"
	nameAgain  = "always-allow, a second process (how precise this is)"
	rss        = "memory, bytes"
	mostReads  = 0.3 // of warm answers: keys whose TTL was over are read again
	leastReads = 0.95
)

// variants starts those that live through the whole run. The last is the one with all keys in memory.
func (r *straightRig) variants(ctx context.Context) ([]*variant, error) {
	var out []*variant
	for i, name := range []string{nameAllow, nameAgain} {
		v, err := r.allow(ctx, name, r.world.socket(fmt.Sprintf("allow%d", i)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, v)
	}
	warm, err := r.warm(ctx, fmt.Sprintf("warm: %d keys, seen before", r.options.warm), "warm", r.options.warm)
	if err != nil {
		return nil, err
	}
	live, err := r.warm(ctx, fmt.Sprintf("warm at %d live keys", r.live), "live", r.live, sized(r.live)...)
	if err != nil {
		return nil, err
	}
	return append(out, warm, &variant{name: "cold: every key for the first time", turn: r.cold}, live), nil
}

func (r *straightRig) allow(ctx context.Context, name, socket string) (*variant, error) {
	p, err := r.fleet.startAllow(ctx, socket)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, func(ctx context.Context) error { return listening(ctx, socket) }); err != nil {
		return nil, err
	}
	if err := r.checkAnswers(ctx, socket, false); err != nil {
		return nil, err
	}
	a, err := r.dial(socket)
	if err != nil {
		return nil, err
	}
	if err := a.each(ctx, r.live); err != nil { // as the doors, so that all have grown to their size
		return nil, err
	}
	keys := &sequence{keys: r.options.warm}
	return &variant{name: name, turn: func(ctx context.Context) (figures, error) { return r.measure(ctx, a, keys, p) }}, nil
}

// warm starts a door and shows it the keys.
func (r *straightRig) warm(ctx context.Context, name, socket string, n int, flags ...string) (*variant, error) {
	d, a, err := r.primed(ctx, socket, n, flags...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	keys := &sequence{keys: n}
	return &variant{name: name, turn: func(ctx context.Context) (figures, error) {
		before, err := d.stats(ctx)
		if err != nil {
			return nil, err
		}
		f, err := r.measure(ctx, a, keys, d.process)
		if err != nil {
			return nil, err
		}
		return f, d.checkMisses(ctx, before, 0, mostReads)
	}}, nil
}

// primed starts a door that has seen n keys, twice.
func (r *straightRig) primed(ctx context.Context, socket string, n int, flags ...string) (*door, askers, error) {
	d, err := r.fleet.startDoor(ctx, r.options, r.world, socket, flags...)
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkAnswers(ctx, d.socket, true); err != nil {
		return nil, nil, err
	}
	a, err := r.dial(d.socket)
	if err != nil {
		return nil, nil, err
	}
	for range 2 {
		if err := a.each(ctx, n); err != nil {
			return nil, nil, err
		}
	}
	return d, a, nil
}

// cold measures a door that has just started, and has seen none of the keys.
func (r *straightRig) cold(ctx context.Context) (f figures, err error) {
	d, err := r.fleet.startDoor(ctx, r.options, r.world, "cold")
	if err != nil {
		return nil, err
	}
	defer d.stop()
	a, err := r.dial(d.socket)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if f, err = r.measure(ctx, a, &sequence{keys: r.live, once: true}, d.process); err != nil {
		return nil, err
	}
	return f, d.checkMisses(ctx, stats{}, leastReads, 1)
}

func (r *straightRig) measure(ctx context.Context, a askers, keys *sequence, p *process) (figures, error) {
	t, err := a.closedLoop(ctx, r.options, r.machine, keys, p)
	if err != nil {
		return nil, err
	}
	held, err := p.rss()
	return figures{cpuAuth: t.perAnswer(0), rate: t.rate(), rss: float64(held)}, err
}

// memoryUse is what a door holds, in bytes.
type memoryUse struct{ empty, remembered, live float64 }

// memory looks at a door with its caches as they ship, before and after it has seen keys.
func (r *straightRig) memory(ctx context.Context) (memoryUse, error) {
	var m memoryUse
	for n, into := range map[int]*float64{1: &m.empty, r.remembered: &m.remembered} {
		d, a, err := r.primed(ctx, "memory", n)
		if err != nil {
			return m, err
		}
		held, err := d.rss()
		*into = float64(held)
		if err := errors.Join(err, a.close()); err != nil {
			return m, err
		}
		d.stop()
	}
	return m, nil
}

// report prints everything.
func (r *straightRig) report(w io.Writer, variants []*variant, m memoryUse) error {
	allow := variants[0]
	t := table{head: []string{"the door alone", "CPU of its process, µs a check", "of always-allow's", "checks/s", "of always-allow's"}}
	for _, v := range variants {
		t.add(v.name, v.of(cpuAuth).show("%.1f"), v.ratio(cpuAuth, allow).show("%.2f"), v.of(rate).show("%.0f"), v.ratio(rate, allow).show("%.2f"))
	}
	fmt.Fprintf(w, "`make bench`: %d connections, %d rounds of %s, %d CPUs, %s, %s/%s, %s.\n", //nolint:errcheck // write says it
		r.connections, r.rounds, r.window, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintln(w, "Medians, with the lowest and the highest round.") //nolint:errcheck // write says it
	fmt.Fprintln(w)                                                    //nolint:errcheck // write says it
	if err := t.write(w); err != nil {
		return err
	}
	const mib = 1 << 20
	memory := table{head: []string{"memory", "resident, MiB", "bytes a key"}}
	memory.add("just started", fmt.Sprintf("%.1f", m.empty/mib), "")
	memory.add(fmt.Sprintf("%d keys seen, caches as they ship", r.remembered), fmt.Sprintf("%.1f", m.remembered/mib), fmt.Sprintf("%.0f", (m.remembered-m.empty)/float64(r.remembered)))
	memory.add(fmt.Sprintf("%d keys seen, caches of that size", r.live), fmt.Sprintf("%.1f", m.live/mib), fmt.Sprintf("%.0f", (m.live-m.empty)/float64(r.live)))
	if err := memory.write(w); err != nil {
		return err
	}
	warm, cold, live := variants[2], variants[3], variants[4]
	held := m.remembered / mib
	return writeGoals(w, []goal{
		{what: "warm, of always-allow's CPU", measured: warm.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 0.40},
		{what: "cold, of always-allow's CPU", measured: cold.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 2.0},
		{what: fmt.Sprintf("warm at %d live keys, of always-allow's CPU", r.live), measured: live.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 0.40},
		{what: fmt.Sprintf("MiB at %d keys", r.remembered), measured: spread{held, held, held}, format: "%.1f", atMost: true, bound: 40},
	})
}
