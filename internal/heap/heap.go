// Package heap spares a small and busy process most of its garbage collections.
//
// Go collects when the heap has doubled. A process that keeps a few megabytes, and makes as much garbage in some hundredths
// of a second, then spends a good part of its time on looking at the same few megabytes again. Keep lets so much garbage
// come together each time that looking is cheap beside it. It sets no limit: a limit below what is alive would let the
// process do nothing but collect (see GOMEMLIMIT for one).
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"sallyport/internal/periodic"
)

// DefaultRoom is how much garbage may come together, in bytes, while little is alive.
const DefaultRoom = 10 << 20

const (
	// least is Percent when much is alive: under the 100 that is usual, since by then it is a lot of memory.
	least = 60
	// interval is how soon Percent follows a heap that grows, as it does while caches fill.
	interval = time.Second
	whole    = 100
)

// Percent is GOGC's value for a heap of which so many bytes are alive: how much garbage may come together, in percent of
// what is alive.
func Percent(live, room uint64) int {
	live = max(live, 1<<20) //nolint:mnd // right after the start hardly anything is
	return max(int(room*whole/live), least)
}

// Keep keeps room until ctx ends. It does nothing if the environment sets GOGC: then somebody chose.
func Keep(ctx context.Context, room uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	before, last := debug.SetGCPercent(Percent(live(), room)), 0
	defer func() { debug.SetGCPercent(before) }()
	periodic.Run(ctx, interval, func(context.Context) error {
		if percent := Percent(live(), room); percent != last { // setting it stops the program for a moment
			debug.SetGCPercent(percent)
			last = percent
		}
		return nil
	}, func(error) {}) // there is none
}

// live is how many bytes the last collection found alive.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
