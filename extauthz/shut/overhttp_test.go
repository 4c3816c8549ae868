package shut_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"sallyport/envoy"
	"sallyport/envoy/envoytest"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// askingOverHTTP runs the configuration that we ship for it, with the sockets of the test.
func askingOverHTTP(t *testing.T, door xds.Endpoint, r *replica) *site {
	t.Helper()
	text, err := os.ReadFile("../../envoy/door-over-http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{replica: r, backend: newBackend(t, "backend"), exchange: newBackend(t, "exchange"), names: gateway.DefaultHeaders(), plain: true}
	read := func(g xds.Gateway) (*bootstrapv3.Bootstrap, error) {
		path := func(e xds.Endpoint) string {
			p, _ := e.SocketPath()
			return p
		}
		changed := strings.NewReplacer(
			"/run/sallyport/envoy-admin.sock", path(g.Admin), "/run/sallyport/memory.sock", path(s.backend.endpoint), "/run/sallyport/check.sock", path(door),
			"{address: 0.0.0.0, port_value: 8080}", "{address: 127.0.0.1, port_value: 0}", "timeout: 0.2s", "timeout: 2s",
		).Replace(string(text))
		var tree any
		if err := yaml.Unmarshal([]byte(changed), &tree); err != nil {
			return nil, err
		}
		asJSON, err := json.Marshal(tree)
		if err != nil {
			return nil, err
		}
		b := &bootstrapv3.Bootstrap{}
		return b, protojson.Unmarshal(asJSON, b)
	}
	s.envoy = envoytest.Start(t, xds.Gateway{
		Backend: xds.Backend{Upstream: xds.Upstream{Endpoint: s.backend.endpoint}}, Authz: xds.Authz{Upstream: xds.Upstream{Endpoint: door}},
	}, func(c *envoy.Config) { c.Bootstrap = read })
	t.Cleanup(func() { s.noSecretWasWritten(t) })
	return s
}

func TestADoorAskedOverHTTPIsAsShut(t *testing.T) {
	at := newClock()
	store := sqlite(t, at.Now)
	r := newReplica(t, store, at, gateway.DefaultHeaders())
	r.serveHTTP(t)
	s, i := askingOverHTTP(t, r.endpoint, r), newIssuer(t, store, at)
	m := i.mint(t)
	forged := append(forgedHeaders(s.names, m), namedInConnection(s.names, m)...)
	for n := range forged {
		if forged[n].http2 == &mismatch { // blanks around a value: they are lost on the way to the door, and so is the forgery
			forged[n].http2 = nil
		}
	}
	good := i.forge(t, nil, nil)
	for _, table := range []struct {
		name string
		rows []row
	}{
		{"forged headers", forged},
		{"forged headers without a key", withoutKey(forged)},
		{"authorization", authorizations(m, i.mint(t))},
		{"stored keys", storedKeys(t, i)},
		{"bytes", bytesThatDoNotBelong(m)},
		{"a good key of the forger's", []row{{name: "it", send: bearer(good.text), want: passes(good.identity)}}},
		{"shapes", shapes(m)},
		{"signatures", signatures(t, i)},
		{"token headers", tokenHeaders(t, i)},
		{"claims", claims(t, i)},
		{"members twice", membersTwice(t, i)},
		{"paths without a key", overHTTP(tricked(tricks, "", outcome{}))},
		{"paths with one", overHTTP(tricked(tricks, m.line(), passes(m.identity)))},
	} {
		t.Run(table.name, func(t *testing.T) { s.run(t, table.rows) })
	}
}

// overHTTP leaves out the paths of the outer door, which that configuration does not have, and those that the door cannot
// read: it answers 400, and they go no further.
func overHTTP(rows []row) (out []row) {
	for _, r := range rows {
		switch {
		case r.want.exchange:
			continue
		case r.send.path == "/v1/%zz" || r.send.path == "/v1/%":
			r.want = stopped(http.StatusBadRequest)
		}
		out = append(out, r)
	}
	return out
}

func TestADoorAskedOverHTTPThatAnswersGarbageIsShut(t *testing.T) {
	endpoint := newStage(t).endpoint
	s := stage{askingOverHTTP(t, endpoint, nil), endpoint}
	away := outcome{status: http.StatusServiceUnavailable}
	says := func(status int, headers ...string) func(net.Listener) {
		return func(l net.Listener) {
			server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for n := 0; n < len(headers); n += 2 {
					w.Header().Set(headers[n], headers[n+1])
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "welcome")
			})}
			defer server.Close() //nolint:errcheck // a test
			_ = server.Serve(l)  // it ends as the listener is closed
		}
	}
	for _, c := range []struct {
		name  string
		serve func(net.Listener)
		want  outcome
	}{
		{"another web server, which says 200 to everything", says(200), stopped(403)},
		{"a yes with an empty namespace", says(200, "X-Sallyport-Namespace", ""), stopped(403)},
		{"a yes that names an agent alone", says(200, "X-Sallyport-Agent", "run-1"), stopped(403)},
		{"204", says(204), stopped(204)},
		{"302 to a login page", says(302, "Location", "/login"), stopped(302)},
		{"404", says(404), stopped(404)},
		{"500", says(500), away},
		{"503", says(503), away},
		{"bytes", speaking("\x00\xff\x00\xffgarbage"), away},
		{"hanging up", speaking(""), away},
		{"an answer cut short", speaking("HTTP/1.1 200 OK\r\nContent-Le"), away},
		{"two lengths", speaking("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\nx-sallyport-namespace: a\r\n\r\n"), away},
		{"nothing at all", silent, away},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.play(t, c.serve)
			c.want.wordless = true
			s.run(t, []row{{name: "it", send: bearer("whatever-it-may-be"), want: c.want}})
		})
	}
	t.Run("away", func(t *testing.T) {
		away.wordless = true
		s.run(t, []row{{name: "it", send: bearer("whatever-it-may-be"), want: away}})
	})
	t.Run("back again", func(t *testing.T) {
		s.play(t, says(200, "X-Sallyport-Namespace", "team", "X-Other", "not for the backend"))
		s.run(t, []row{{name: "it", send: bearer("whatever-it-may-be"), want: outcome{status: 200, arrives: true, owner: gateway.Identity{Namespace: "team"}}}})
	})
}
