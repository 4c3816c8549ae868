package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// part is something that runs until its context ends.
type part func(ctx context.Context) error

// runParts runs parts until ctx ends or one of them fails, which ends the others. It returns when all have ended.
func runParts(ctx context.Context, parts []part) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		g.Go(func() error { return p(ctx) })
	}
	return g.Wait()
}

// quietly makes a part of a loop that cannot fail.
func quietly(loop func(ctx context.Context)) part {
	return func(ctx context.Context) error {
		loop(ctx)
		return nil
	}
}

// again runs f until ctx ends, and again when it fails, ever more slowly: from a tenth of a second to five seconds.
func again(ctx context.Context, f func(ctx context.Context) error, report func(err error, next time.Duration)) {
	const first, longest, growth = 100 * time.Millisecond, 5 * time.Second, 2
	wait := first
	for ctx.Err() == nil {
		began := time.Now()
		err := f(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = fmt.Errorf("ended")
		}
		if time.Since(began) > longest {
			wait = first // it worked for a while
		}
		report(err, wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(wait*growth, longest)
	}
}
