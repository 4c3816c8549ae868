// Package periodic does a thing again and again until it is told to end.
package periodic

import (
	"context"
	"time"
)

// Run calls f once each interval, until ctx ends. An error goes to report, unless ctx has ended; f is called again all the
// same. Calls do not overlap: one that takes longer than the interval delays the next.
func Run(ctx context.Context, interval time.Duration, f func(ctx context.Context) error, report func(err error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := f(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}
