package checkserver

import (
	"fmt"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// question is what is read of a check: what the decision needs, what must go, and what the log tells of the request.
type question struct {
	extauthz.Presented
	asked extauthz.Asked
}

// usualLines are Authorization and x-request-id.
const usualLines = 2

// decode reads a CheckRequest in its wire form. One that cannot be read is a question too, so that it is decided, counted
// and logged like any other, and answered with a denial: an error would leave it to Envoy's failure_mode_allow.
func decode(bytes []byte, names gateway.Headers) *question {
	q := &question{}
	c := checkRequest{names: names, raw: make([]line, 0, usualLines)}
	w := wire{bytes, string(bytes)}
	if err := c.read(w.message(), 0); err != nil {
		q.Request.Unreadable = fmt.Errorf("read the CheckRequest: %w", err)
		return q
	}
	for _, l := range c.lines() {
		q.Add(l.name, l.value, names)
	}
	q.asked = extauthz.Asked{Method: c.method, Path: c.path, RequestID: q.RequestID}
	return q
}
