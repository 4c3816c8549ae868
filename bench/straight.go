package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"google.golang.org/protobuf/proto"
)

// straightRig is what `make bench-straight` measures with.
type straightRig struct {
	*rig
	checks   [][]byte // one a key
	noKey    []byte
	revoked  []byte
	liveDoor *door // the one with all keys in memory
}

// straight measures the door without Envoy, and returns what is to be printed.
func straight(ctx context.Context, o options) (page string, err error) {
	r, err := newRig(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	s := &straightRig{rig: r}
	if err := s.encode(); err != nil {
		return "", err
	}
	log.Print("filling caches")
	memory, err := s.memory(ctx)
	if err != nil {
		return "", err
	}
	variants, err := s.variants(ctx)
	if err != nil {
		return "", err
	}
	if err := play(ctx, o.rounds, variants); err != nil {
		return "", err
	}
	if memory.live, err = s.liveDoor.memory(); err != nil { // after all that it was asked
		return "", err
	}
	return s.report(variants, memory), nil
}

func (r *straightRig) encode() (err error) {
	if r.checks, err = encodeChecks(r.world.keys, r.headers); err != nil {
		return err
	}
	revoked, err := encodeChecks([]string{r.world.revoked}, r.headers)
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
	out, err := dialAll(r.connections, func() (asker, error) { return dialGRPC(socket, r.checks) })
	for _, a := range out[:len(out):len(out)] {
		for range r.streams - 1 {
			out = append(out, a.(*grpcAsker).beside())
		}
	}
	return out, err
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

// variants starts those that live through the whole run. The last is the one with all keys in memory.
func (r *straightRig) variants(ctx context.Context) ([]*variant, error) {
	var out []*variant
	for i, name := range []string{nameAllow, nameAgain} {
		v, err := r.allow(ctx, name, fmt.Sprintf("allow%d", i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, v)
	}
	_, warm, err := r.warm(ctx, r.nameWarm(), "warm", r.options.warm)
	if err != nil {
		return nil, err
	}
	var live *variant
	r.liveDoor, live, err = r.warm(ctx, r.nameLive(), "live", r.live, sized(r.live)...)
	if err != nil {
		return nil, err
	}
	return append(out, warm, &variant{name: nameCold, turn: r.cold}, live), nil
}

func (r *straightRig) allow(ctx context.Context, name, short string) (*variant, error) {
	d, err := r.fleet.startAllow(ctx, r.world, short)
	if err != nil {
		return nil, err
	}
	if err := r.checkAnswers(ctx, d.socket, false); err != nil {
		return nil, err
	}
	a, err := r.dial(d.socket)
	if err != nil {
		return nil, err
	}
	if err := a.each(ctx, r.live); err != nil { // as the doors, so that all have grown to their size
		return nil, err
	}
	keys := &sequence{keys: r.options.warm}
	return &variant{name: name, turn: func(ctx context.Context) (figures, error) { return r.measure(ctx, a, keys, d.process) }}, nil
}

// warm starts a door and shows it the keys.
func (r *straightRig) warm(ctx context.Context, name, socket string, n int, flags ...string) (*door, *variant, error) {
	d, a, err := r.primed(ctx, socket, n, flags...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	keys := &sequence{keys: n}
	return d, &variant{name: name, turn: func(ctx context.Context) (figures, error) {
		if n == r.options.warm { // those whose TTL has passed since the last turn are read now, not while it is measured
			if err := a.each(ctx, n); err != nil {
				return nil, err
			}
		}
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
	return f, d.checkMisses(ctx, stats{}, leastReads, allReads)
}

func (r *straightRig) measure(ctx context.Context, a askers, keys *sequence, p *process) (figures, error) {
	t, err := a.closedLoop(ctx, r.options, r.machine, keys, p)
	if err != nil {
		return nil, err
	}
	return t.figures(0, nil), nil
}

// memoryUse is what a door holds.
type memoryUse struct{ empty, remembered, live held }

// memory looks at a door with its caches as they ship, before and after it has seen keys.
func (r *straightRig) memory(ctx context.Context) (memoryUse, error) {
	var m memoryUse
	for n, into := range map[int]*held{1: &m.empty, r.remembered: &m.remembered} {
		d, a, err := r.primed(ctx, "memory", n)
		if err != nil {
			return m, err
		}
		if *into, err = d.memory(); err != nil {
			return m, err
		}
		if err := a.close(); err != nil {
			return m, err
		}
		d.stop()
	}
	return m, nil
}

// report is everything, as Markdown.
func (r *straightRig) report(variants []*variant, m memoryUse) string {
	allow, warm, cold, live := named(variants, nameAllow), named(variants, r.nameWarm()), named(variants, nameCold), named(variants, r.nameLive())
	var page strings.Builder
	r.heading(&page, "make bench-straight", fmt.Sprintf("%d checks at a time on each, %d headers more than our Envoy sends, %d rounds of %s", r.streams, r.headers, r.rounds, r.window))
	t := table{head: []string{"the door alone", "CPU of its process, µs a check", "of always-allow's", "all rounds together", "checks/s", "of always-allow's"}}
	for _, v := range variants {
		t.add(v.name, v.of(cpuAuth).show("%.1f"), v.ratio(cpuAuth, allow).show("%.2f"), fmt.Sprintf("%.2f", v.together(allow)), v.of(rate).show("%.0f"), v.ratio(rate, allow).show("%.2f"))
	}
	t.write(&page)

	memory := table{head: []string{"memory of its process", "resident, MiB", "without the program's own pages, MiB", "bytes a key"}}
	for _, seen := range []struct {
		what string
		keys int
		held held
	}{
		{"just started", 1, m.empty},
		{fmt.Sprintf("%d keys seen, caches as they ship", r.remembered), r.remembered, m.remembered},
		{fmt.Sprintf("%d keys seen, caches of that size", r.live), r.live, m.live},
	} {
		aKey := "–"
		if seen.keys > 1 {
			aKey = fmt.Sprintf("%.0f", (seen.held.resident-m.empty.resident)/float64(seen.keys))
		}
		memory.add(seen.what, fmt.Sprintf("%.1f", seen.held.resident/mib), fmt.Sprintf("%.1f", seen.held.anonymous/mib), aKey)
	}
	memory.write(&page)

	writeGoals(&page, []goal{
		{what: "warm, of always-allow's CPU", measured: warm.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 0.40},
		{what: "cold, of always-allow's CPU", measured: cold.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 2.0},
		{what: fmt.Sprintf("warm at %d live keys, of always-allow's CPU", r.live), measured: live.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 0.40},
		{what: fmt.Sprintf("MiB at %d keys, without the program's own pages", r.remembered), measured: spreadOf([]float64{m.remembered.anonymous / mib}), format: "%.1f", atMost: true, bound: 40},
	})
	r.conditions(&page)
	return page.String()
}
