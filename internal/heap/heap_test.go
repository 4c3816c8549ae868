package heap_test

import (
	"context"
	"runtime/debug"
	"testing"

	"sallyport/internal/heap"
)

const mib = 1 << 20

func TestALittleHeapMayGrowByTheRoomAndALargeOneByAShare(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 1600}, {mib, 1600}, {4 * mib, 400}, {8 * mib, 200}, {16 * mib, 100}, {20 * mib, 80}, {400 * mib, 60},
	} {
		if got := heap.Percent(c.live, 16*mib); got != c.want {
			t.Errorf("with %d bytes alive: %d %%, want %d", c.live, got, c.want)
		}
	}
}

func TestWhatWasSetBeforeIsSetAgainInTheEnd(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	heap.Keep(ctx, 16*mib)
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("GOGC is %d", got)
	}
}

func TestWhoeverSetsGOGCIsObeyed(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	heap.Keep(t.Context(), 16*mib) // returns at once, although its context has not ended
	if got := debug.SetGCPercent(50); got != 50 {
		t.Errorf("GOGC is %d", got)
	}
}
