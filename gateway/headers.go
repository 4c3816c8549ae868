package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// DefaultPrefix begins the name of every trusted header unless an operator chose another.
const DefaultPrefix = "x-sallyport-"

// Headers names the trusted headers. Names are lower-case, as HTTP/2 and Envoy carry them.
type Headers struct {
	Prefix    string // every header that begins with it belongs to the gateway
	Namespace string // whose data: "<tenant>:<agent>"
	Tenant    string
	Agent     string
	Session   string // the pod that holds the key
	KeyID     string
}

// DefaultHeaders names the headers under DefaultPrefix.
func DefaultHeaders() Headers {
	return namesUnder(DefaultPrefix)
}

// NewHeaders names the headers under a prefix. A prefix is lower-case letters, digits and hyphens, begins with a letter
// and ends with a hyphen, so that stripping it cannot take a standard header along.
func NewHeaders(prefix string) (Headers, error) {
	if err := checkPrefix(prefix); err != nil {
		return Headers{}, fmt.Errorf("header prefix %q: %w", prefix, err)
	}
	return namesUnder(prefix), nil
}

func namesUnder(prefix string) Headers {
	return Headers{
		Prefix:    prefix,
		Namespace: prefix + "namespace",
		Tenant:    prefix + "tenant",
		Agent:     prefix + "agent",
		Session:   prefix + "session",
		KeyID:     prefix + "key-id",
	}
}

func checkPrefix(prefix string) error {
	const minLength = 4 // "a-" and the like would swallow headers such as a-im
	switch {
	case len(prefix) < minLength:
		return fmt.Errorf("use at least %d characters, such as %q", minLength, DefaultPrefix)
	case prefix[0] < 'a' || prefix[0] > 'z':
		return errors.New("begin it with a lower-case letter")
	case !strings.HasSuffix(prefix, "-"):
		return errors.New("end it with a hyphen")
	}
	for _, r := range prefix {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return fmt.Errorf("use only lower-case letters, digits and hyphens, not %q", r)
		}
	}
	if strings.HasPrefix(prefix, ClaimedPrefix) {
		return fmt.Errorf("%q carries what clients claim", ClaimedPrefix)
	}
	for _, standard := range reservedPrefixes {
		if strings.HasPrefix(standard, prefix) {
			return fmt.Errorf("it would also take %q, which others use", standard)
		}
	}
	return nil
}

// reservedPrefixes are headers that Envoy, proxies and clients rely on; a trusted prefix must not cover them.
var reservedPrefixes = []string{
	"x-forwarded-for", "x-request-id", "x-envoy-", "content-type", "content-length", "accept-encoding",
	ClaimedPrefix, "mcp-session-id", "mcp-protocol-version", "transfer-encoding", "if-none-match", "www-authenticate",
}

// All returns the five names.
func (h Headers) All() []string {
	return []string{h.Namespace, h.Tenant, h.Agent, h.Session, h.KeyID}
}

// Owns says whether a header name belongs to the gateway. Case is ignored, and an underscore counts as a hyphen,
// because CGI-like servers (nginx, WSGI) make one name of both.
func (h Headers) Owns(name string) bool {
	if len(name) < len(h.Prefix) {
		return false
	}
	return strings.EqualFold(strings.ReplaceAll(name[:len(h.Prefix)], "_", "-"), h.Prefix)
}

// Values returns the headers that carry id, in the order of All; empty fields are left out.
func (h Headers) Values(id Identity) []HeaderValue {
	all := []HeaderValue{
		{h.Namespace, id.Namespace},
		{h.Tenant, id.Tenant},
		{h.Agent, id.Agent},
		{h.Session, id.Session},
		{h.KeyID, id.KeyID},
	}
	out := all[:0]
	for _, v := range all {
		if v.Value != "" {
			out = append(out, v)
		}
	}
	return out
}

// HeaderValue is one header to set.
type HeaderValue struct {
	Name, Value string
}

// ErrNoIdentity says that the gateway set no namespace on a request: it did not come through the gateway.
var ErrNoIdentity = errors.New("the request carries no trusted namespace header")

// Parse reads the identity that the gateway set. It fails with ErrNoIdentity if there is none, and refuses a header that
// is repeated: the gateway sets each one once, so a second one came from somewhere else.
func (h Headers) Parse(from http.Header) (Identity, error) {
	var id Identity
	for _, f := range []struct {
		name string
		into *string
	}{
		{h.Namespace, &id.Namespace},
		{h.Tenant, &id.Tenant},
		{h.Agent, &id.Agent},
		{h.Session, &id.Session},
		{h.KeyID, &id.KeyID},
	} {
		values := from.Values(f.name)
		if len(values) > 1 {
			return Identity{}, fmt.Errorf("trusted header %s is repeated", f.name)
		}
		if len(values) == 1 {
			*f.into = values[0]
		}
	}
	if id.Namespace == "" {
		return Identity{}, ErrNoIdentity
	}
	return id, id.Validate()
}
