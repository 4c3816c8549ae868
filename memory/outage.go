package memory

import (
	"log/slog"
	"sync"
	"time"
)

// outage is whether a service that the memory can do without answers. While it does not it is asked only now and then, and
// the log has one line when that begins and one when it ends.
type outage struct {
	now          func() time.Time
	log          *slog.Logger
	rest         time.Duration // after a failure
	begins, ends string        // what the log says

	mu    sync.Mutex
	since time.Time // of the first failure in a row; zero while the service answers
	until time.Time // it is not asked before
}

func (o *outage) resting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now().Before(o.until)
}

func (o *outage) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = o.now().Add(o.rest)
	if o.since.IsZero() {
		o.since = o.now()
		o.log.Warn(o.begins, "error", err)
	}
}

func (o *outage) worked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.log.Info(o.ends, "after", o.now().Sub(o.since).Round(time.Second).String())
	}
	o.since, o.until = time.Time{}, time.Time{}
}
