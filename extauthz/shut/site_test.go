package shut_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/envoy"
	"sallyport/envoy/envoytest"
	"sallyport/extauthz"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// site is a gateway with all that belongs to it: one real Envoy between clients and a backend, and the doors.
type site struct {
	envoy    *envoytest.Envoy
	replica  *replica // nil if the test plays the door
	backend  *backend
	exchange *backend // stands for the outer door, which the inner one does not guard
	names    gateway.Headers
	plain    bool // Envoy's own errors are its own words, not our JSON

	mu      sync.Mutex
	secrets []string // whatever was presented: none of it may be in a log
}

// plan is how a site differs from the usual one.
type plan struct {
	prefix    string
	timeout   time.Duration // of a check
	maxStream time.Duration
	door      xds.Endpoint // "" is the replica's
	envoy     func(*envoy.Config)
}

// newSite starts an Envoy in front of a door. The door serves already, or will.
func newSite(t *testing.T, r *replica, p plan) *site {
	t.Helper()
	s := &site{replica: r, backend: newBackend(t, "backend"), exchange: newBackend(t, "exchange"), names: namesOf(t, p.prefix)}
	g := xds.Gateway{
		HeaderPrefix: s.names.Prefix,
		MaxStream:    p.maxStream,
		Backend: xds.Backend{
			Upstream: xds.Upstream{Endpoint: s.backend.endpoint}, Name: "memory",
			Paths: []xds.Path{{Prefix: "/v1/"}, {Exact: "/mcp", Stream: true}, {Exact: "/healthz", Open: true}},
		},
		Authz:    xds.Authz{Upstream: xds.Upstream{Endpoint: p.door}, Timeout: p.timeout},
		Exchange: &xds.Exchange{Upstream: xds.Upstream{Endpoint: s.exchange.endpoint}},
	}
	if p.timeout == 0 {
		g.Authz.Timeout = 5 * time.Second // these tests are about answers, on machines that are busy with others
	}
	if r != nil {
		g.Authz.Endpoint = r.endpoint
	}
	change := []func(*envoy.Config){}
	if p.envoy != nil {
		change = append(change, p.envoy)
	}
	s.envoy = envoytest.Start(t, g, change...)
	t.Cleanup(func() { s.noSecretWasWritten(t) })
	return s
}

func namesOf(t *testing.T, prefix string) gateway.Headers {
	t.Helper()
	if prefix == "" {
		return gateway.DefaultHeaders()
	}
	names, err := gateway.NewHeaders(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// usual is a site with a door over a key store of its own, and who mints keys for it.
func usual(t *testing.T, p plan) (*site, *issuer) {
	t.Helper()
	at := newClock()
	store := sqlite(t, at.Now)
	r := newReplica(t, store, at, namesOf(t, p.prefix))
	r.serve(t)
	return newSite(t, r, p), newIssuer(t, store, at)
}

func (s *site) address() string { return s.envoy.Supervisor.Addr().String() }

// presented remembers the secret of an Authorization line, and returns it.
func (s *site) presented(r request) (secrets []string) {
	const long = 16 // shorter words are no secrets
	for _, line := range r.headers {
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(name), "authorization") {
			continue
		}
		for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" ,\t\"", r) }) {
			if len(word) >= long {
				secrets = append(secrets, word)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, secrets...)
	return secrets
}

func (s *site) noSecretWasWritten(t *testing.T) {
	t.Helper()
	logs := map[string]string{"Envoy's access log": s.envoy.AccessLog()}
	if s.replica != nil {
		logs["the door's log"] = s.replica.log.String()
	}
	for _, secret := range s.secrets {
		for where, text := range logs {
			if strings.Contains(text, secret) {
				t.Errorf("a key is in %s", where)
				return
			}
		}
	}
}

// decisions counts what the door has decided.
func (s *site) decisions() map[extauthz.Reason]uint64 {
	if s.replica == nil {
		return nil
	}
	return s.replica.door.Decisions()
}
