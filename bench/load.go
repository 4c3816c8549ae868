package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// asker asks one question at a time over a connection of its own.
type asker interface {
	ask(ctx context.Context, i int) error // with the i-th key; an error if it was not let through
	close() error
}

// askers are the connections that ask at the same time.
type askers []asker

func (a askers) close() error {
	var errs []error
	for _, each := range a {
		errs = append(errs, each.close())
	}
	return errors.Join(errs...)
}

// dialAll opens n connections.
func dialAll(n int, dial func() (asker, error)) (askers, error) {
	var out askers
	for range n {
		a, err := dial()
		if err != nil {
			return nil, errors.Join(err, out.close())
		}
		out = append(out, a)
	}
	return out, nil
}

// sequence says which key is used next.
type sequence struct {
	keys int
	once bool // no key twice
	used atomic.Int64
}

var errKeysUsedUp = errors.New("all keys were used once: give more with -live, or measure for a shorter -time")

func (s *sequence) next() (int, error) {
	n := int(s.used.Add(1) - 1)
	if s.once && n >= s.keys {
		return 0, errKeysUsedUp
	}
	return n % s.keys, nil
}

// each asks with every key once.
func (a askers) each(ctx context.Context, keys int) error {
	s := &sequence{keys: keys, once: true}
	err := a.ask(ctx, s, func(int, time.Duration) {})
	if errors.Is(err, errKeysUsedUp) {
		return nil
	}
	return err
}

// ask keeps every connection busy until ctx ends (no error) or something fails.
func (a askers) ask(ctx context.Context, s *sequence, answered func(asker int, took time.Duration)) error {
	failing, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wait sync.WaitGroup
	for n, each := range a {
		wait.Go(func() {
			for failing.Err() == nil {
				i, err := s.next()
				if err == nil {
					began := time.Now()
					// Not with ctx: what has begun when the time is over is finished, so that the connection can be used again.
					err = each.ask(context.WithoutCancel(ctx), i)
					answered(n, time.Since(began))
				}
				if err != nil {
					fail(err)
				}
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil && errors.Is(context.Cause(failing), context.Cause(ctx)) {
		return nil
	}
	return context.Cause(failing)
}

// counter is alone in its cache line.
type counter struct {
	atomic.Int64
	_ [56]byte
}

// turn is what was seen of one variant in one round.
type turn struct {
	answered int64
	took     time.Duration
	cpu      []time.Duration // of each process that was watched
}

// micros is the CPU time of the i-th process in the turn, in microseconds.
func (t turn) micros(i int) float64 {
	return float64(t.cpu[i].Nanoseconds()) / float64(time.Microsecond)
}

// figures are the rate, and what a door and others used for each answer.
func (t turn) figures(door int, others map[string]int) figures {
	n := float64(t.answered)
	f := figures{answers: n, rate: n / t.took.Seconds()}
	if door >= 0 {
		f[cpuOfDoor], f[cpuAuth] = t.micros(door), t.micros(door)/n
	}
	for name, i := range others {
		f[name] = t.micros(i) / n
	}
	return f
}

// closedLoop asks as fast as there are answers. It counts after the load has settled, and for as long as o.window.
func (a askers) closedLoop(ctx context.Context, o options, m *machine, s *sequence, watched ...*process) (turn, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	counts := make([]counter, len(a))
	ended := make(chan error, 1)
	go func() { ended <- a.ask(ctx, s, func(n int, _ time.Duration) { counts[n].Add(1) }) }()
	sum := func() (n int64) {
		for i := range counts {
			n += counts[i].Load()
		}
		return n
	}
	t, err := observe(ctx, o, m, sum, watched)
	stop()
	if askErr := <-ended; askErr != nil {
		return t, askErr
	}
	if err == nil && t.answered == 0 {
		err = fmt.Errorf("no answer within %s", t.took)
	}
	return t, err
}

// observe reads all counters at the beginning and at the end of the window.
func observe(ctx context.Context, o options, m *machine, answered func() int64, watched []*process) (turn, error) {
	if err := pause(ctx, o.settle); err != nil {
		return turn{}, err
	}
	before, err := m.read()
	if err != nil {
		return turn{}, err
	}
	cpuBefore, err := cpuOfEach(watched)
	if err != nil {
		return turn{}, err
	}
	began, from := time.Now(), answered()
	t := turn{}
	for t.answered == 0 && time.Since(began) < askTimeout { // one window, but for a short one on a machine that is very busy
		if err := pause(ctx, o.window); err != nil {
			return turn{}, err
		}
		t.answered, t.took = answered()-from, time.Since(began)
	}
	if t.cpu, err = cpuOfEach(watched); err != nil {
		return turn{}, err
	}
	for i := range t.cpu {
		t.cpu[i] -= cpuBefore[i]
	}
	s, err := m.since(before)
	m.add(s)
	return t, err
}

func cpuOfEach(watched []*process) ([]time.Duration, error) {
	out := make([]time.Duration, len(watched))
	for i, p := range watched {
		var err error
		if out[i], err = p.cpu(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pause waits, or returns why not.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
