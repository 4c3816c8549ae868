package shut_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// trick is a path, and what becomes of it: whoever has no key reaches nothing that needs one, however it is spelled.
type trick struct {
	path    string
	arrives string // where the backend sees it with a key; "" is nowhere
	status  int    // if it arrives nowhere, or the backend does not answer 200
	open    bool   // it is the same as an open path, which needs no key
	outer   bool   // it is one of the outer door's
}

var tricks = []trick{
	{path: "/v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz", arrives: "/healthz", open: true},
	{path: "/v1/keys", arrives: "/v1/keys", outer: true},

	{path: "//v1//beliefs", arrives: "/v1/beliefs"},
	{path: "/v1//", arrives: "/v1/"},
	{path: "/./v1/./beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/x/../../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/..", status: 404},
	{path: "/v1/../nowhere", status: 404},

	// From an open path, or the outer door's, into what needs a key.
	{path: "/healthz/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz/%2e%2e/v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz/%2E./v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz/.%2e/v1/beliefs", arrives: "/v1/beliefs"},
	{path: `/healthz\..\v1\beliefs`, arrives: "/v1/beliefs"},
	{path: `/healthz/..\v1/beliefs`, arrives: "/v1/beliefs"},
	{path: "/healthz//../v1/beliefs", status: 404}, // the empty part between the slashes is what .. takes back
	{path: "/healthz//../../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/keys/../beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/keys/%2e%2e/beliefs", arrives: "/v1/beliefs"},
	{path: "/.well-known/jwks.json/../../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz/..;/v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz;/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz;x=y", status: 404},
	{path: "/healthz/", status: 404},
	{path: "/healthz/x", status: 404},
	{path: "/healthz.json", status: 404},
	{path: "/healthz%00", status: 400},
	{path: "/healthz%20", status: 404},
	{path: "/healthz%3f/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/healthz?/../v1/beliefs", arrives: "/healthz?/../v1/beliefs", open: true},
	{path: "/healthz?x=/v1/", arrives: "/healthz?x=/v1/", open: true},
	{path: "/v1/../healthz", arrives: "/healthz", open: true},
	{path: "//healthz", arrives: "/healthz", open: true},
	{path: "/%68ealthz", arrives: "/healthz", open: true},
	{path: "/healthz#/../v1/beliefs", status: 400},

	// Encoded slashes mean different things to different servers, so they are refused.
	{path: "/healthz%2f..%2fv1%2fbeliefs", status: 400},
	{path: "/healthz/..%2fv1/beliefs", status: 400},
	{path: "/v1%2fbeliefs", status: 400},
	{path: "/v1/a%2Fb", status: 400},
	{path: "/healthz%5c..%5cv1/beliefs", status: 400},
	{path: "/v1/keys/..%2fbeliefs", status: 400},

	{path: "/%76%31/beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/%2576", arrives: "/v1/%2576"},
	{path: "/v1/%252e%252e/%252e%252e/healthz", arrives: "/v1/%252e%252e/%252e%252e/healthz"},
	{path: "/v1/;/../../healthz", arrives: "/healthz", open: true},
	{path: "/v1;/beliefs", status: 404},
	{path: "/v1/beliefs;x=y", arrives: "/v1/beliefs;x=y"},
	{path: "/V1/beliefs", status: 404},
	{path: "/v1", status: 404},
	{path: "/mcp", arrives: "/mcp"},
	{path: "/mcp/", status: 404},
	{path: "/mcp/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/a%0d%0ax-sallyport-namespace:%20other", arrives: "/v1/a%0d%0ax-sallyport-namespace:%20other"},
	{path: "/v1/%zz", arrives: "/v1/%zz", status: 400}, // the backend's own answer: it cannot read that
	{path: "/v1/%", arrives: "/v1/%", status: 400},
	{path: "/v1/" + strings.Repeat("x", 30<<10), arrives: "/v1/" + strings.Repeat("x", 30<<10)},
	{path: "/" + strings.Repeat("../", 8<<10) + "v1/beliefs", arrives: "/v1/beliefs"},
	{path: "/v1/" + strings.Repeat("x", 40<<10), status: 431},
	{path: "v1/beliefs", status: 400},
	{path: "?", status: 400},
	{path: "*", status: 400},

	// The absolute form of RFC 9112, for proxies.
	{path: "http://gateway/v1/beliefs", arrives: "/v1/beliefs"},
	{path: "http://elsewhere.example/v1/beliefs", arrives: "/v1/beliefs"},
	{path: "http://gateway/healthz/../v1/beliefs", arrives: "/v1/beliefs"},
	{path: "http://gateway//v1/beliefs", arrives: "/v1/beliefs"},
	{path: "http://user:password@gateway/v1/beliefs", arrives: "/v1/beliefs"},
	{path: "http://gateway", status: 404},
	{path: "https://gateway/v1/beliefs", status: 403},
	{path: "ftp://gateway/v1/beliefs", status: 400},
	{path: "http:///v1/beliefs", status: 400},
}

func TestNoSpellingOfAPathGoesAroundTheDoor(t *testing.T) {
	s, i := usual(t, plan{})
	m := i.mint(t)
	t.Run("without a key", func(t *testing.T) { s.run(t, tricked(tricks, "", outcome{})) })
	t.Run("with one", func(t *testing.T) { s.run(t, tricked(tricks, m.line(), passes(m.identity))) })
	t.Run("with one that is revoked", func(t *testing.T) {
		gone := i.revoke(t, i.mint(t))
		s.run(t, tricked(tricks[:len(tricks)/2], gone.line(), unauthenticated("revoked")))
	})
}

// tricked makes rows of tricks. line is the key, if any; checked is what the door says of it.
func tricked(tricks []trick, line string, checked outcome) []row {
	if line == "" {
		checked = unauthenticated("no_key")
	}
	rows := make([]row, 0, len(tricks))
	for _, k := range tricks {
		r := row{name: k.path, send: request{path: k.path}}
		if len(r.name) > 60 {
			r.name = r.name[:20] + "…" + r.name[len(r.name)-10:]
		}
		if line != "" {
			r.send.headers = []string{line}
		}
		switch {
		case k.outer:
			r.want = outer(k.arrives)
		case k.open:
			r.want = open(k.arrives)
		case k.arrives != "":
			r.want = checked.at(k.arrives)
			if k.status != 0 && r.want.arrives {
				r.want.status = k.status
			}
		default:
			r.want = stopped(k.status)
		}
		r.only1 = strings.Contains(k.path, "://") // in HTTP/2 the target is in several fields
		if k.arrives == "" && (k.status == http.StatusBadRequest || k.status == http.StatusRequestHeaderFieldsTooLarge) {
			r.http2 = notSpoken
		}
		rows = append(rows, r)
	}
	return rows
}

func TestNoMethodGoesAroundTheDoor(t *testing.T) {
	s, i := usual(t, plan{})
	m := i.mint(t)
	for name, c := range map[string]struct {
		headers []string
		checked outcome
	}{"without a key": {nil, unauthenticated("no_key")}, "with one": {[]string{m.line()}, passes(m.identity)}} {
		rows := []row{}
		with := func(method, path string, want outcome, only1 bool) {
			rows = append(rows, row{name: method + " " + path, send: request{method: method, path: path, headers: c.headers}, want: want, only1: only1})
		}
		for _, method := range []string{"HEAD", "OPTIONS", "DELETE", "PATCH", "PROPFIND", "TRACE"} {
			with(method, "/v1/beliefs", c.checked, false)
		}
		with("OPTIONS", "*", stopped(404), false)
		with("CONNECT", "gateway:443", stopped(404), true)
		with("CONNECT", "/v1/beliefs", stopped(400), true)
		with("PRI", "*", stopped(400), true)
		with("get", "/v1/beliefs", stopped(400), true)
		t.Run(name, func(t *testing.T) { s.run(t, rows) })
	}
	t.Run("CONNECT, and what is no path, in HTTP/2", func(t *testing.T) {
		before, decided, answers := s.backend.mark(), s.decisions(), map[string]func() answer{}
		for name, lines := range map[string][]string{
			"plain":                      {":method=CONNECT", ":authority=gateway:443"},
			"extended, for a WebSocket":  {":method=CONNECT", ":protocol=websocket", ":scheme=http", ":authority=gateway", ":path=/v1/beliefs"},
			"extended, for something":    {":method=CONNECT", ":protocol=connect-udp", ":scheme=http", ":authority=gateway", ":path=/v1/beliefs"},
			"two paths":                  {":method=GET", ":scheme=http", ":authority=gateway", ":path=/healthz", ":path=/v1/beliefs"},
			"a path after other headers": {":method=GET", ":scheme=http", ":authority=gateway", "x-other=x", ":path=/v1/beliefs"},
			"no path":                    {":method=GET", ":scheme=http", ":authority=gateway"},
			"an empty path":              {":method=GET", ":scheme=http", ":authority=gateway", ":path="},
		} {
			var fields []hpack.HeaderField
			for _, line := range append(lines, "authorization=Bearer "+m.text) {
				name, value, _ := strings.Cut(line, "=")
				fields = append(fields, hpack.HeaderField{Name: name, Value: value})
			}
			answers[name] = frames(t, s.address(), fields, "")
		}
		for name, answered := range answers {
			if got := answered(); got.status != 0 && got.status < 400 {
				t.Errorf("%s: answered %d", name, got.status)
			}
		}
		s.checkDecision(t, decided, "")
		if got := s.backend.since(before); got != "" {
			t.Errorf("the backend saw %.300q", got)
		}
	})
}
