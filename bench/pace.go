package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// openLoop asks at a steady rate, whether there are answers or not, and returns the median of how long an answer took. A
// question that had to wait for its connection is counted from when it was due, so that a slow server cannot hide that it
// is asked less.
func (a askers) openLoop(ctx context.Context, o options, m *machine, s *sequence, perSecond int) (time.Duration, error) {
	before, err := m.read()
	if err != nil {
		return 0, err
	}
	// A connection that sleeps until its turn keeps its P until Go's sysmon looks, which may be ten milliseconds (see sleepUntil):
	// with one to spare for each, no answer waits for that.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + len(a)))
	every := time.Duration(len(a)) * time.Second / time.Duration(perSecond) // on each connection
	began := time.Now()
	from, to := began.Add(o.settle), began.Add(o.settle+o.paced)
	took := make([][]time.Duration, len(a))
	errs := make([]error, len(a))
	var wait sync.WaitGroup
	for n, each := range a {
		wait.Go(func() {
			first := began.Add(time.Duration(n) * every / time.Duration(len(a)))
			took[n], errs[n] = paced(ctx, each, s, first, every, from, to)
		})
	}
	wait.Wait()
	span, err := m.since(before)
	m.add(span)
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if err := errors.Join(append(errs, err)...); err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, errors.New("no request was due within the time: measure for a longer -time")
	}
	return all[len(all)/2], nil
}

// paced asks over one connection, at first and then every so often, and returns how long those took that were due between
// from and to.
func paced(ctx context.Context, a asker, s *sequence, first time.Time, every time.Duration, from, to time.Time) ([]time.Duration, error) {
	var took []time.Duration
	for due := first; due.Before(to) && ctx.Err() == nil; due = due.Add(every) {
		asked := due
		if time.Now().Before(due) {
			sleepUntil(due)
			asked = time.Now() // that this process woke late is not the server's doing
		}
		i, err := s.next()
		if err != nil {
			return nil, err
		}
		if err := a.ask(ctx, i); err != nil {
			return nil, err
		}
		if !due.Before(from) {
			took = append(took, time.Since(asked))
		}
	}
	return took, context.Cause(ctx)
}
