package envoy

import (
	"fmt"
	"strings"
)

// death says why a child that had been ready is gone.
func (c *child) death() error {
	reason := "ended by itself"
	if c.err != nil {
		reason = c.err.Error() // "signal: killed", "exit status 1"
	}
	if last := c.lastWords(); last != "" {
		reason += ": " + last
	}
	return fmt.Errorf("envoy (process %d) is gone: %s", c.process.Pid, reason)
}

// startFailure says why a child never became ready, and what to do about the usual causes.
func (s *Supervisor) startFailure(c *child) error {
	words := c.lastWords()
	socket, onSocket := s.gateway.Admin.SocketPath()
	switch {
	case strings.Contains(words, "Address already in use"):
		return fmt.Errorf("envoy cannot listen on %s, where another process listens: stop that process, or choose another address (%s)", s.listens(), words)
	case onSocket && strings.Contains(words, "No such file or directory") && strings.Contains(words, socket):
		return fmt.Errorf("envoy cannot make its admin socket %s: make the directory first (%s)", socket, words)
	case strings.Contains(words, "Permission denied"):
		return fmt.Errorf("envoy may not listen on %s or make its admin socket %s: choose a port above 1023 and a directory of this user's (%s)", s.listens(), s.gateway.Admin, words)
	}
	return fmt.Errorf("envoy did not start: %w", c.death())
}

func (s *Supervisor) listens() string {
	if s.gateway.Metrics != "" {
		return s.gateway.Listen + " or " + s.gateway.Metrics
	}
	return s.gateway.Listen
}

// lastWords are the errors that Envoy logged last. Envoy may repeat its whole configuration in one: that is cut.
func (c *child) lastWords() string {
	errors := c.log.lastErrors()
	for i, e := range errors {
		errors[i] = shorten(e)
	}
	return strings.Join(errors, "; ")
}
