package main

import (
	"sallyport/internal/telemetry"
)

// tracing returns the spans of a service, nil if the OTEL_ variables do not ask for any; done sends those that wait.
func (e *environment) tracing(service string) (t *telemetry.Tracing, done func(), err error) {
	t, err = telemetry.New(e.ctx, "sallyport-"+service, version, e.log)
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		if err := t.Close(); err != nil {
			e.log.Warn("the last spans are lost", "error", err)
		}
	}, nil
}
