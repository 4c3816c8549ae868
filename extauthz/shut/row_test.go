package shut_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sallyport/extauthz"
	"sallyport/gateway"
	"sallyport/internal/key"
)

// row is one attempt: what goes in, and what must come of it.
type row struct {
	name  string
	send  request
	want  outcome
	http2 *outcome // over HTTP/2, if that differs
	only1 bool     // it cannot be said in HTTP/2
}

// outcome is what a client gets, what the door decided, and what the backend saw.
type outcome struct {
	status int
	code   gateway.Code    // of the error; "" for whichever
	reason extauthz.Reason // the one decision of the door; "" means that it was not asked

	owner    gateway.Identity // whose request the backend saw; the zero value with arrives: nobody's
	arrives  bool             // at the backend; otherwise not one byte does
	exchange bool             // it goes to the outer door instead
	path     string           // that arrives; "" is as it was sent
	keeps    []string         // headers that are nobody's, and arrive as they were sent
	wordless bool             // the answer has no body
}

// passes is a request that reaches the backend as its owner's.
func passes(owner gateway.Identity, keeps ...string) outcome {
	return outcome{status: http.StatusOK, reason: extauthz.ReasonAllowed, owner: owner, arrives: true, keeps: keeps}
}

// at says which path arrives.
func (o outcome) at(path string) outcome {
	o.path = path
	return o
}

// open reaches the backend without a check, and as nobody.
func open(path string) outcome { return outcome{status: http.StatusOK, arrives: true, path: path} }

// outer reaches the exchange, which has a check of its own.
func outer(path string) outcome { return outcome{status: http.StatusOK, exchange: true, path: path} }

// unauthenticated is the door's 401.
func unauthenticated(reason key.Reason) outcome {
	return outcome{status: http.StatusUnauthorized, code: gateway.CodeUnauthenticated, reason: extauthz.Reason(reason)}
}

// mismatch is the door's 403.
var mismatch = outcome{status: http.StatusForbidden, code: gateway.CodeNamespaceMismatch, reason: extauthz.ReasonNamespaceMismatch}

// stopped is a request that Envoy does not take, before anybody is asked.
func stopped(status int) outcome { return outcome{status: status} }

// notSpoken is what HTTP/2 does not let a client say: Envoy resets the stream, hangs up, or answers 400.
var notSpoken = new(outcome)

// protocols are the two that clients speak.
var protocols = []struct {
	name string
	send func(t *testing.T, address string, r request) answer
}{{"HTTP/1.1", http1}, {"HTTP/2", overHTTP2}}

// run tries each row in each protocol.
func (s *site) run(t *testing.T, rows []row) {
	t.Helper()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var unspoken []row
			for _, r := range rows {
				second := p.name != protocols[0].name
				switch {
				case second && r.only1:
					continue
				case second && r.http2 == notSpoken:
					unspoken = append(unspoken, r)
					continue
				case second && r.http2 != nil:
					r.want = *r.http2
				}
				t.Run(r.name, func(t *testing.T) {
					s.hold(t, r.send, r.want, func(r request) answer { return p.send(t, s.address(), r) })
				})
			}
			s.runUnspoken(t, unspoken)
		})
	}
}

// runUnspoken tries rows that HTTP/2 does not let a client say, all at once, since Envoy takes a second to hang up. Nobody
// may hear of any of them.
func (s *site) runUnspoken(t *testing.T, rows []row) {
	t.Helper()
	decided, atBackend := s.decisions(), s.backend.mark()
	answers := make([]func() answer, 0, len(rows))
	for _, r := range rows {
		s.presented(r.send)
		answers = append(answers, startHTTP2(t, s.address(), r.send.withDefaults()))
	}
	for n, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := answers[n](); got.status != 0 && got.status != http.StatusBadRequest && got.status != r.want.status {
				t.Errorf("answered %d %s", got.status, got.body)
			}
		})
	}
	s.checkDecision(t, decided, "")
	if got := s.backend.since(atBackend); got != "" {
		t.Errorf("the backend saw %.300q", got)
	}
}

// hold sends a request and holds what came of it against what should.
func (s *site) hold(t *testing.T, r request, want outcome, send func(request) answer) {
	t.Helper()
	r = r.withDefaults()
	secrets := s.presented(r)
	decided, atBackend, atExchange := s.decisions(), s.backend.mark(), s.exchange.mark()
	got := send(r)
	s.checkAnswer(t, got, want, r.method == http.MethodHead, secrets)
	s.checkDecision(t, decided, want.reason)
	arrived, other := s.backend.since(atBackend), s.exchange.since(atExchange)
	if want.exchange {
		arrived, other = other, arrived
	}
	if other != "" {
		t.Errorf("where it must not go arrived %.300q", other)
	}
	switch {
	case !want.arrives && !want.exchange:
		if arrived != "" {
			t.Errorf("the backend saw %.300q", arrived)
		}
		return
	case arrived == "":
		t.Fatal("the backend saw nothing")
	}
	if path := want.path; path != "" && arrived.path() != path || path == "" && arrived.path() != r.path {
		t.Errorf("the backend was asked for %q", arrived.path())
	}
	if want.arrives {
		s.checkArrival(t, arrived, want, secrets)
	}
}

func (s *site) checkAnswer(t *testing.T, got answer, want outcome, head bool, secrets []string) {
	t.Helper()
	if got.status != want.status {
		t.Errorf("answered %d %s, want %d", got.status, got.body, want.status)
	}
	for _, secret := range secrets {
		if strings.Contains(got.body, secret) {
			t.Error("the answer quotes the key")
		}
	}
	if got.status < http.StatusBadRequest || want.arrives || s.plain && want.reason == "" || want.wordless || head {
		return
	}
	var body struct {
		Error struct{ Code gateway.Code }
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Error.Code == "" {
		t.Errorf("the error is not in our words: %q", got.body)
	}
	if want.code != "" && body.Error.Code != want.code {
		t.Errorf("code = %s, want %s", body.Error.Code, want.code)
	}
	if got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

// checkDecision makes sure that the door was asked once, and refused for the reason that the row is about, or was not asked.
func (s *site) checkDecision(t *testing.T, before map[extauthz.Reason]uint64, want extauthz.Reason) {
	t.Helper()
	if before == nil {
		return
	}
	for reason, n := range s.decisions() {
		if n -= before[reason]; (reason == want) != (n == 1) || n > 1 {
			t.Errorf("the door decided %q %d times, want it to decide %q", reason, n, want)
		}
	}
}

// checkArrival makes sure that the backend saw the trusted headers of the owner, each once, and nothing else of the
// gateway's, of the key, or of what was forged.
func (s *site) checkArrival(t *testing.T, got arrival, want outcome, secrets []string) {
	t.Helper()
	var owned []gateway.HeaderValue
	for _, h := range got.headers() {
		switch {
		case s.names.Owns(h[0]) || gateway.ClaimedHeaders().Owns(h[0]):
			owned = append(owned, gateway.HeaderValue{Name: h[0], Value: h[1]})
		case slices.Contains([]string{"connection", "proxy-connection", "keep-alive"}, h[0]) && strings.Contains(strings.ToLower(h[1]), s.names.Prefix):
			t.Errorf("%s: %s arrived: a proxy further in would take a trusted header away", h[0], h[1])
		}
	}
	expected := s.names.Values(want.owner)
	slices.SortFunc(owned, byName)
	slices.SortFunc(expected, byName)
	if !slices.Equal(owned, expected) {
		t.Errorf("the backend saw %v, want %v", owned, expected)
	}
	for _, name := range want.keeps {
		if len(got.values(name)) == 0 {
			t.Errorf("%s did not arrive", name)
		}
	}
	if v := got.values("authorization"); v != nil {
		t.Errorf("authorization = %q arrived", v)
	}
	for _, never := range append(secrets, "evil") { // what is forged begins so
		if strings.Contains(string(got), never) {
			t.Errorf("%.20q arrived", never)
		}
	}
}

func byName(a, b gateway.HeaderValue) int { return strings.Compare(a.Name, b.Name) }
