package extauthz

import (
	"bytes"
	"net/http"
	"strings"

	"sallyport/gateway"
)

// Presented is what an adapter reads of a request's headers: what the decision needs, and what must go.
type Presented struct {
	Request   Request
	Forged    []string // headers of the gateway's that the client sent, by their names as they arrived
	RequestID []byte   // x-request-id: what access logs and backends know the request by
}

// claimedNames are where Envoy shows what it stripped from under the trusted prefix.
var claimedNames = gateway.ClaimedHeaders()

var authorization, requestID = []byte("authorization"), []byte("x-request-id")

// Reads says whether Add looks at the lines of a name; an adapter may leave out all others.
func Reads(name []byte, names gateway.Headers) bool {
	return bytes.EqualFold(name, authorization) || bytes.EqualFold(name, requestID) || names.Owns(string(name)) || claimedNames.Owns(string(name))
}

// Add reads one header line. It keeps value as it is, and no copy.
func (p *Presented) Add(name, value []byte, names gateway.Headers) {
	switch {
	case bytes.EqualFold(name, authorization):
		p.Request.Authorization = append(p.Request.Authorization, value)
	case bytes.EqualFold(name, requestID):
		p.RequestID = value
	case names.Owns(string(name)):
		p.claim(string(name), names.Prefix, string(value))
	case claimedNames.Owns(string(name)):
		p.claim(string(name), claimedNames.Prefix, string(value))
	}
}

func (p *Presented) claim(name, prefix, value string) {
	p.Forged = append(p.Forged, name)
	p.Request.Claimed = append(p.Request.Claimed, gateway.HeaderValue{Name: name[len(prefix):], Value: value})
}

// Clone returns a copy that shares no memory with the lines that were added.
func (p *Presented) Clone() Presented {
	c := *p
	c.RequestID = bytes.Clone(p.RequestID)
	c.Request.Authorization = nil
	for _, line := range p.Request.Authorization {
		c.Request.Authorization = append(c.Request.Authorization, bytes.Clone(line))
	}
	return c
}

// ReadRequest reads the headers of an HTTP request.
func ReadRequest(h http.Header, names gateway.Headers) Presented {
	var p Presented
	for name, values := range h {
		for _, value := range values {
			p.Add([]byte(name), []byte(value), names)
		}
	}
	return p
}

// HeadersToRemove are those that must not reach the backend when a request is allowed: the key, and what the client sent
// under the gateway's names. None of them is one that is set: Envoy removes after it sets.
func HeadersToRemove(d Decision, names gateway.Headers, forged []string) []string {
	if len(forged) == 0 {
		return keyAlone
	}
	set := names.Values(d.Identity)
	remove := make([]string, 0, 1+len(forged))
	remove = append(remove, "authorization")
	for _, name := range forged {
		if !sets(set, name) {
			remove = append(remove, name)
		}
	}
	return remove
}

// keyAlone is nearly every answer, and made once. Nobody changes it.
var keyAlone = []string{"authorization"}

func sets(set []gateway.HeaderValue, name string) bool {
	for _, h := range set {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}
