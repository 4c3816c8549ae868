package envoy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"sallyport/envoy"
	"sallyport/envoy/envoytest"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// ownedBy returns the headers of a request that belong to the gateway, or carry what a client claimed.
func ownedBy(names gateway.Headers, h http.Header) map[string][]string {
	out := map[string][]string{}
	for name, values := range h {
		if names.Owns(name) || gateway.ClaimedHeaders().Owns(name) {
			out[strings.ToLower(name)] = values
		}
	}
	return out
}

func TestForgedHeadersNeverArrive(t *testing.T) {
	r := newRig(t)
	forgeries := map[string][]string{
		"lower case":               {"x-sallyport-namespace: evil:1"},
		"mixed case":               {"X-SallyPort-NameSpace: evil:1"},
		"upper case":               {"X-SALLYPORT-KEY-ID: evil"},
		"repeated":                 {"x-sallyport-namespace: agents:run-1", "x-sallyport-namespace: evil:1"},
		"without a meaning":        {"x-sallyport-admin: true"},
		"empty":                    {"x-sallyport-namespace:"},
		"named in Connection":      {"Connection: x-sallyport-namespace, keep-alive", "x-sallyport-namespace: evil:1"},
		"only named in Connection": {"Connection: x-sallyport-namespace, x-sallyport-tenant"},
		"the claimed names":        {"sallyport-claimed-namespace: evil:1", "Sallyport-Claimed-Other: evil"},
		"all five": {
			"x-sallyport-namespace: e:1", "x-sallyport-tenant: e", "x-sallyport-agent: 1", "x-sallyport-session: e", "x-sallyport-key-id: e",
		},
	}
	for name, headers := range forgeries {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/beliefs", "/mcp"} {
				before := r.backend.count()
				got := r.raw(t, "GET "+path, append(headers, "Authorization: Bearer key")...)
				if got.status != http.StatusOK || r.backend.count() != before+1 {
					t.Fatalf("%s: status = %d, %s", path, got.status, got.body)
				}
				want := map[string][]string{}
				for _, h := range gateway.DefaultHeaders().Values(identity) {
					want[h.Name] = []string{h.Value}
				}
				arrived := ownedBy(gateway.DefaultHeaders(), r.backend.last(t).Header)
				if len(arrived) != len(want) {
					t.Errorf("%s: arrived %v, want %v", path, arrived, want)
				}
				for name, values := range want {
					if !slices.Equal(arrived[name], values) {
						t.Errorf("%s: %s = %q, want %q", path, name, arrived[name], values)
					}
				}
			}
			for _, open := range []struct {
				path string
				at   *recorder
			}{{"/healthz", r.backend}, {"/v1/keys", r.exchange}} {
				if got := r.raw(t, "GET "+open.path, headers...); got.status != http.StatusOK {
					t.Fatalf("%s: status = %d, %s", open.path, got.status, got.body)
				}
				if arrived := ownedBy(gateway.DefaultHeaders(), open.at.last(t).Header); len(arrived) != 0 {
					t.Errorf("%s, where no door is asked: arrived %v", open.path, arrived)
				}
			}
		})
	}
	t.Run("an underscore is refused before anything is asked", func(t *testing.T) {
		checks, requests := r.authz.checks(), r.backend.count()
		for _, header := range []string{"x_sallyport_namespace: evil:1", "X-Sallyport_Namespace: evil:1", "some_header: x"} {
			got := r.raw(t, "GET /v1/beliefs", "Authorization: Bearer key", header)
			wantError(t, got, http.StatusBadRequest, gateway.CodeInvalidArgument)
			if !strings.Contains(got.body, "underscore") {
				t.Errorf("the answer does not say why: %s", got.body)
			}
		}
		if r.authz.checks() != checks || r.backend.count() != requests {
			t.Error("a refused request went further")
		}
	})
}

func TestTheInnerDoorSeesWhatAClientClaimed(t *testing.T) {
	r := newRig(t)
	claimed := gateway.ClaimedHeaders()
	for _, tt := range []struct {
		name    string
		send    []string
		header  string
		visible []string
	}{
		{"a forged namespace", []string{"X-Sallyport-Namespace: evil:1"}, claimed.Namespace, []string{"evil:1"}},
		{"a forged tenant", []string{"x-sallyport-tenant: evil"}, claimed.Tenant, []string{"evil"}},
		{"a forged agent", []string{"x-sallyport-agent: evil"}, claimed.Agent, []string{"evil"}},
		{"a forged session", []string{"x-sallyport-session: evil"}, claimed.Session, []string{"evil"}},
		{"a forged key id", []string{"x-sallyport-key-id: evil"}, claimed.KeyID, []string{"evil"}},
		{"nothing claimed, nothing shown", nil, claimed.Namespace, nil},
		{"the claimed name itself is not believed", []string{"sallyport-claimed-namespace: agents:run-1", "x-sallyport-namespace: evil:1"}, claimed.Namespace, []string{"evil:1"}},
		{"nor alone", []string{"sallyport-claimed-namespace: agents:run-1"}, claimed.Namespace, nil},
		{"the trusted name is empty by then", []string{"x-sallyport-namespace: evil:1"}, gateway.DefaultHeaders().Namespace, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.raw(t, "GET /v1/x", append(tt.send, "Authorization: Bearer key")...)
			if got := r.authz.headers(tt.header); !slices.Equal(got, tt.visible) {
				t.Errorf("the server sees %s = %q, want %q", tt.header, got, tt.visible)
			}
		})
	}
}

func TestTheInnerDoorSeesOnlyWhatItNeeds(t *testing.T) {
	r := newRig(t)
	r.raw(t, "GET /v1/x?q=1", "Authorization: Bearer one", "authorization: Bearer two", "Cookie: secret", "traceparent: 1", "Traceparent: 2", "X-Other: x")
	// Envoy joins this one header's lines when it reads them, for the server and for everybody else: no scheme parses that.
	if got, want := r.authz.headers("authorization"), []string{"Bearer one,Bearer two"}; !slices.Equal(got, want) {
		t.Errorf("Authorization = %q, want %q", got, want)
	}
	for _, name := range []string{"cookie", "x-other"} {
		if got := r.authz.headers(name); got != nil {
			t.Errorf("%s = %q crossed over", name, got)
		}
	}
	if got, want := r.authz.headers("traceparent"), []string{"1", "2"}; !slices.Equal(got, want) {
		t.Errorf("traceparent lines = %q, want them apart: %q", got, want)
	}
	if got := r.authz.headers("x-request-id"); len(got) != 1 {
		t.Errorf("x-request-id = %q", got)
	}
	r.raw(t, "GET /v1/x", "Authorization: Bearer \xff\xfe")
	if got, want := r.authz.headers("authorization"), []string{"Bearer \xff\xfe"}; !slices.Equal(got, want) {
		t.Errorf("raw bytes = %q, want %q", got, want)
	}
}

func TestAnotherPrefix(t *testing.T) {
	const prefix = "x-acme-"
	r := newRig(t, func(g *xds.Gateway) { g.HeaderPrefix = prefix })
	names, err := gateway.NewHeaders(prefix)
	if err != nil {
		t.Fatal(err)
	}
	r.raw(t, "GET /healthz", "X-Acme-Namespace: evil:1", "x-acme-other: x")
	if arrived := ownedBy(names, r.backend.last(t).Header); len(arrived) != 0 {
		t.Errorf("arrived %v", arrived)
	}
	// The server still sets the default names, which this Envoy does not allow it to set.
	got := r.raw(t, "GET /v1/x", "X-Acme-Namespace: evil:1", "Authorization: Bearer key")
	wantError(t, got, http.StatusInternalServerError, gateway.CodeInternal)
	if seen := r.authz.headers(gateway.ClaimedHeaders().Namespace); !slices.Equal(seen, []string{"evil:1"}) {
		t.Errorf("the server sees %q", seen)
	}
}

func TestTheAuthorizationServerMaySetOnlyIdentity(t *testing.T) {
	for _, name := range []string{"host", "x-forwarded-for", "cookie", ":path", ":authority", "x-envoy-upstream-rq-timeout-ms", "x-sallyport", "my-x-sallyport-namespace"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			yes := allow()
			ok := yes.GetOkResponse()
			ok.Headers = append(ok.Headers, overwrite(name, "/evil"))
			r.authz.respond(yes)
			wantError(t, r.get(t, "/v1/x"), http.StatusInternalServerError, gateway.CodeInternal)
			if n := r.backend.count(); n != 0 {
				t.Errorf("%d requests reached the backend", n)
			}
		})
	}
}

func TestClientsAreNotBelievedAboutEnvoy(t *testing.T) {
	r := newRig(t)
	forged := []string{
		"Authorization: Bearer key", "x-envoy-internal: true", "x-envoy-upstream-rq-timeout-ms: 1", "x-envoy-retry-on: 5xx",
		"x-envoy-original-path: /other", "x-envoy-external-address: 10.9.9.9", "X-Forwarded-Client-Cert: Hash=evil", "X-Request-Id: evil", "x-forwarded-proto: https",
	}
	for _, forwarded := range [][]string{nil, {"X-Forwarded-For: 10.9.9.9"}} { // with and without a proxy that is none
		r.raw(t, "GET /v1/x", append(forwarded, forged...)...)
		h := r.backend.last(t).Header
		if got := h.Get("X-Envoy-External-Address"); got != "127.0.0.1" { // Envoy's own word for who called
			t.Errorf("X-Envoy-External-Address = %q", got)
		}
		h.Del("X-Envoy-External-Address")
		for name := range h {
			if strings.HasPrefix(strings.ToLower(name), "x-envoy-") || name == "X-Forwarded-Client-Cert" {
				t.Errorf("%s = %q arrived", name, h[name])
			}
		}
		if got := h.Get("X-Request-Id"); got == "evil" || got == "" {
			t.Errorf("X-Request-Id = %q", got)
		}
		if got := h.Get("X-Forwarded-Proto"); got != "http" {
			t.Errorf("X-Forwarded-Proto = %q", got)
		}
	}
	envoytest.Eventually(t, "the access log names the peer, not what it wrote into X-Forwarded-For", func() bool {
		return strings.Count(r.AccessLog(), `"peer":"127.0.0.1"`) == 2
	})
}

// The strip, and what demands an identity after the door, are what is left when an operator makes the door fail open.
func TestEvenADoorThatFailsOpenLetsNoForgedIdentityThrough(t *testing.T) {
	r := newRig(t)
	r.authz.server.Stop()
	g := small(t)
	g.Backend.Endpoint, g.Authz.Endpoint = r.backend.endpoint, r.authz.endpoint
	open := &rig{Envoy: envoytest.Start(t, g, func(c *envoy.Config) {
		c.Bootstrap = func(g xds.Gateway) (*bootstrapv3.Bootstrap, error) {
			b, err := xds.Bootstrap(g)
			if err == nil {
				manager, door := parts(t, b)
				door.FailureModeAllow = true
				replace(t, b, manager, door)
			}
			return b, err
		}
	})}
	got := open.raw(t, "GET /v1/x", "X-Sallyport-Namespace: evil:1", "x-sallyport-key-id: evil", "sallyport-claimed-namespace: evil:1")
	wantError(t, got, http.StatusInternalServerError, gateway.CodeInternal) // as nobody's, since the strip left no name
	if n := r.backend.count(); n != 0 {
		t.Errorf("%d requests reached the backend", n)
	}
}
