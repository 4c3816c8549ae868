package envoy

import (
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"sallyport/gateway/xds"
)

// SetClock replaces the clock that the back-off reads and waits on.
func (s *Supervisor) SetClock(now func() time.Time, after func(time.Duration) <-chan time.Time) {
	s.now, s.after = now, after
}

// SetBootstrap replaces what turns the gateway into Envoy's configuration.
func (s *Supervisor) SetBootstrap(f func(xds.Gateway) (*bootstrapv3.Bootstrap, error)) {
	s.bootstrap = f
}

// NewLogForwarder is for a test of its own.
var NewLogForwarder = newLogForwarder
