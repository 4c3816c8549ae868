package envoy

import "time"

// SetClock replaces the clock that the back-off reads and waits on.
func (s *Supervisor) SetClock(now func() time.Time, after func(time.Duration) <-chan time.Time) {
	s.now, s.after = now, after
}

// NewLogForwarder is for a test of its own.
var NewLogForwarder = newLogForwarder
