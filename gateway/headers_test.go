package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"sallyport/gateway"
)

func TestNewHeadersRefusesAPrefixThatTakesStandardHeadersAlong(t *testing.T) {
	for prefix, good := range map[string]bool{
		"x-sallyport-":        true,
		"x-acme-memory-":      true,
		"trusted-":            true,
		"":                    false,
		"x-":                  false,
		"x-forwarded-":        false,
		"x-envoy-":            false,
		"x-envoy-trust-":      true,
		"content-":            false,
		"sallyport-":          false,
		"mcp-":                false,
		"x-sallyport":         false,
		gateway.ClaimedPrefix: false,
		"X-Sallyport-":        false,
		"x_sallyport_-":       false,
		"-sallyport-":         false,
		"x-sallyport-\n-":     false,
		"1x-sallyport-":       false,
	} {
		if _, err := gateway.NewHeaders(prefix); (err == nil) != good {
			t.Errorf("NewHeaders(%q) = %v, want good = %v", prefix, err, good)
		}
	}
}

func TestOwnsIgnoresCaseAndCountsUnderscoresAsHyphens(t *testing.T) {
	h := gateway.DefaultHeaders()
	for name, own := range map[string]bool{
		"x-sallyport-namespace": true,
		"X-Sallyport-Anything":  true,
		"X_SALLYPORT_AGENT":     true,
		"x-sallyport_tenant":    true,
		"x-sallyport-":          true,
		"x-sallyport":           false,
		"x-sallyports-agent":    false,
		"sallyport-namespace":   false,
	} {
		if h.Owns(name) != own {
			t.Errorf("Owns(%q) = %v", name, !own)
		}
	}
}

func TestParseReadsWhatValuesWrites(t *testing.T) {
	h := gateway.DefaultHeaders()
	for _, id := range []gateway.Identity{
		{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-x7k", KeyID: "00ff"},
		{Namespace: "n"},
	} {
		from := http.Header{}
		for _, v := range h.Values(id) {
			from.Set(v.Name, v.Value)
		}
		got, err := h.Parse(from)
		if err != nil || got != id {
			t.Errorf("got %+v, %v; want %+v", got, err, id)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	h := gateway.DefaultHeaders()
	for name, from := range map[string]http.Header{
		"no headers":                {},
		"an empty namespace":        {"X-Sallyport-Namespace": {""}},
		"a repeated namespace":      {"X-Sallyport-Namespace": {"a", "a"}},
		"a repeated agent":          {"X-Sallyport-Namespace": {"a"}, "X-Sallyport-Agent": {"b", "c"}},
		"a namespace with a slash":  {"X-Sallyport-Namespace": {"a/b"}},
		"a namespace of 129 bytes":  {"X-Sallyport-Namespace": {strings.Repeat("a", 129)}},
		"two namespaces joined":     {"X-Sallyport-Namespace": {"a, b"}},
		"a control byte in session": {"X-Sallyport-Namespace": {"a"}, "X-Sallyport-Session": {"a\x00"}},
		"a high byte in the agent":  {"X-Sallyport-Namespace": {"a"}, "X-Sallyport-Agent": {"\xff"}},
	} {
		if id, err := h.Parse(from); err == nil {
			t.Errorf("%s: got %+v", name, id)
		}
	}
}

func TestClaimedHeadersAreNotTrustedOnes(t *testing.T) {
	trusted, claimed := gateway.DefaultHeaders(), gateway.ClaimedHeaders()
	for i, name := range claimed.All() {
		if trusted.Owns(name) {
			t.Errorf("%s passes for a trusted header", name)
		}
		if name[len(claimed.Prefix):] != trusted.All()[i][len(trusted.Prefix):] {
			t.Errorf("%s and %s do not go together", name, trusted.All()[i])
		}
	}
}
