package periodic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sallyport/internal/periodic"
)

func TestRunGoesOnAfterAFailureAndEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	failed := errors.New("failed")
	calls, reports := 0, 0
	periodic.Run(ctx, time.Microsecond, func(context.Context) error {
		calls++
		if calls == 3 {
			cancel()
			return ctx.Err() // not worth a report: it was told to end
		}
		return failed
	}, func(err error) {
		if !errors.Is(err, failed) {
			t.Errorf("reported %v", err)
		}
		reports++
	})
	if calls < 3 || reports != 2 {
		t.Errorf("%d calls, %d reports", calls, reports)
	}
}
