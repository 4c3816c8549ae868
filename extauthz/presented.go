package extauthz

import (
	"net/http"
	"strings"

	"sallyport/gateway"
)

// Presented is what an adapter reads of a request's headers: what the decision needs, and what must go.
type Presented struct {
	Request   Request
	Forged    []string // headers of the gateway's that the client sent, by their names as they arrived
	RequestID string   // x-request-id: what access logs and backends know the request by
}

// claimedNames are where Envoy shows what it stripped from under the trusted prefix.
var claimedNames = gateway.ClaimedHeaders()

// Reads says whether Add looks at the lines of a name; an adapter may leave out all others.
func Reads(name string, names gateway.Headers) bool {
	return strings.EqualFold(name, "authorization") || strings.EqualFold(name, "x-request-id") || names.Owns(name) || claimedNames.Owns(name)
}

// Add reads one header line.
func (p *Presented) Add(name, value string, names gateway.Headers) {
	switch {
	case strings.EqualFold(name, "authorization"):
		p.Request.Authorization = append(p.Request.Authorization, value)
	case strings.EqualFold(name, "x-request-id"):
		p.RequestID = value
	case names.Owns(name):
		p.claim(name, name[len(names.Prefix):], value)
	case claimedNames.Owns(name):
		p.claim(name, name[len(claimedNames.Prefix):], value)
	}
}

func (p *Presented) claim(name, suffix, value string) {
	p.Forged = append(p.Forged, name)
	p.Request.Claimed = append(p.Request.Claimed, gateway.HeaderValue{Name: suffix, Value: value})
}

// ReadRequest reads the headers of an HTTP request.
func ReadRequest(h http.Header, names gateway.Headers) Presented {
	var p Presented
	for name, values := range h {
		for _, value := range values {
			p.Add(name, value, names)
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
