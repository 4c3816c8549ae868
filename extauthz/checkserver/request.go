package checkserver

import (
	"bytes"
	"fmt"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// question is what is read of a check: what the decision needs, what must go, and what the log tells of the request.
type question struct {
	extauthz.Presented
	method, path []byte
}

// usualLines are Authorization and x-request-id.
const usualLines = 2

// decode reads a CheckRequest in its wire form; what it returns are pieces of that. One that cannot be read is a question
// too, so that it is decided, counted and logged like any other, and answered with a denial: an error would leave it to
// Envoy's failure_mode_allow.
func decode(wire []byte, names gateway.Headers) question {
	var q question
	c := checkRequest{names: names, raw: make([]line, 0, usualLines)}
	if err := c.read(message{wire, 0, len(wire)}, 0); err != nil {
		q.Request.Unreadable = fmt.Errorf("read the CheckRequest: %w", err)
		return q
	}
	for _, l := range c.lines() {
		q.Add(l.name, l.value, names)
	}
	q.method, q.path = c.method, c.path
	return q
}

// clone returns a copy that does not need the wire form.
func (q *question) clone() question {
	return question{q.Clone(), bytes.Clone(q.method), bytes.Clone(q.path)}
}

// asked is what the log tells of it.
func (q *question) asked() extauthz.Asked {
	return extauthz.Asked{Method: string(q.method), Path: string(q.path), RequestID: string(q.RequestID)}
}
