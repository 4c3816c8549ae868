package shut_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"sallyport/gateway"
)

func TestForgedHeadersNeverReachABackend(t *testing.T) {
	for _, prefix := range []string{gateway.DefaultPrefix, "x-acme-"} {
		t.Run(prefix, func(t *testing.T) {
			s, i := usual(t, plan{prefix: prefix})
			m := i.mint(t)
			rows := append(forgedHeaders(s.names, m), namedInConnection(s.names, m)...)
			t.Run("with a key", func(t *testing.T) { s.run(t, rows) })
			t.Run("without a key", func(t *testing.T) { s.run(t, withoutKey(rows)) })
		})
	}
}

func TestUnderAnotherPrefixTheUsualNamesAreOrdinaryHeaders(t *testing.T) {
	s, i := usual(t, plan{prefix: "x-acme-"})
	m := i.mint(t)
	s.run(t, []row{
		{name: "one that would contradict", send: request{headers: []string{m.line(), "x-sallyport-namespace: other:1"}}, want: passes(m.identity, "x-sallyport-namespace")},
		{name: "beside one that does", send: request{headers: []string{m.line(), "x-sallyport-namespace: agents:run-1", "x-acme-namespace: evil:1"}}, want: mismatch},
		{name: "alone it opens nothing", send: request{headers: []string{"x-sallyport-namespace: agents:run-1"}}, want: unauthenticated("no_key")},
	})
}

func TestASecondRequestOnAConnectionIsCheckedForItself(t *testing.T) {
	s, i := usual(t, plan{})
	m := i.mint(t)
	before := s.backend.mark()
	conn := dial(t, s.address())
	head := "POST /v1/first HTTP/1.1\r\nHost: gateway\r\n" + m.line() + "\r\nContent-Length: 2\r\n\r\n{}"
	_, err := io.WriteString(conn, head+"GET /v1/second HTTP/1.1\r\nHost: gateway\r\n"+s.names.Namespace+": evil:1\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != want {
			t.Errorf("answered %d %v, want %d", response.StatusCode, err, want)
		}
	}
	if got := s.backend.since(before); got.path() != "/v1/first" || strings.Contains(string(got), "second") {
		t.Errorf("the backend saw %q", got)
	}
}

// withoutKey is the same table for a client that has none: what Envoy stopped it stops, all else is answered 401.
func withoutKey(rows []row) []row {
	out := make([]row, 0, len(rows))
	change := func(o outcome) outcome {
		if o.reason == "" {
			return o
		}
		return unauthenticated("no_key")
	}
	for _, r := range rows {
		var headers []string
		for _, h := range r.send.headers {
			if !strings.HasPrefix(h, "Authorization:") {
				headers = append(headers, h)
			}
		}
		r.send.headers = headers
		r.want = change(r.want)
		if r.http2 != nil && r.http2 != notSpoken {
			changed := change(*r.http2)
			r.http2 = &changed
		}
		out = append(out, r)
	}
	return out
}

// forgedHeaders is what a client may write under the trusted prefix. Forged values begin with "evil", which no backend
// may see anywhere.
func forgedHeaders(n gateway.Headers, m minted) []row {
	under := func(line string) string { return n.Prefix + line }
	upper := func(line string) string { return strings.ToUpper(n.Prefix) + line }
	own := passes(m.identity)
	rows := []row{}
	with := func(name string, want outcome, headers ...string) {
		r := row{name: name, send: request{headers: append([]string{m.line()}, headers...)}, want: want}
		for _, h := range headers {
			if field, _, _ := strings.Cut(h, ":"); field != strings.ToLower(field) {
				r.http2 = notSpoken // names are lower-case there
			}
		}
		rows = append(rows, r)
	}
	for _, v := range n.Values(m.identity) {
		with(v.Name+" that contradicts", mismatch, v.Name+": evil")
		with(v.Name+" that contradicts, in upper case", mismatch, strings.ToUpper(v.Name)+": evil")
		with(v.Name+" that agrees", own, v.Name+": "+v.Value)
		with(v.Name+" that is empty", own, v.Name+":")
	}
	with("in mixed case", mismatch, "X"+under("")[1:2]+strings.ToUpper(under("")[2:3])+under("")[3:]+"NameSpace: evil:1")
	with("a name that means nothing", own, under("admin: evil"))
	with("a name that is the prefix", own, under(": evil"))
	with("all that agree at once", own, lines(n.Values(m.identity))...)
	with("a list with the own value in it", mismatch, under("namespace: agents:run-1, evil:1"))
	with("the own value, and more", mismatch, under("namespace: agents:run-1evil"))
	with("the own value in another case", mismatch, under("namespace: AGENTS:RUN-1"))
	with("blanks around the own value", own, under("namespace:    agents:run-1  "))
	rows[len(rows)-1].http2 = &mismatch // they are part of the value there
	with("repeated, both wrong", mismatch, under("namespace: evil:1"), under("namespace: evil:2"))
	with("repeated, the wrong one first", mismatch, under("namespace: evil:1"), under("namespace: agents:run-1"))
	with("repeated, both agree", own, under("namespace: agents:run-1"), under("namespace: agents:run-1"))
	with("a bad byte in the value", mismatch, under("namespace: agents:run-1\xff"))
	with("one name agrees, another does not", mismatch, under("namespace: agents:run-1"), under("tenant: evil"))

	for _, name := range []string{
		strings.ReplaceAll(n.Namespace, "-", "_"), under("key_id"), strings.TrimSuffix(n.Prefix, "-") + "_namespace", "x_" + n.Namespace[2:],
	} {
		with("underscores: "+name, stopped(400), name+": evil")
		rows[len(rows)-1].http2 = notSpoken
	}
	with("underscores, in upper case", stopped(400), strings.ReplaceAll(upper("AGENT"), "-", "_")+": evil")

	claimed := gateway.ClaimedHeaders()
	with("the names that the door reads claims under", own, claimed.Namespace+": evil:1", claimed.Prefix+"other: evil")
	with("those, beside one that agrees", own, claimed.Namespace+": evil:1", under("namespace: agents:run-1"))

	return append(rows, onlyInHTTP1(n, m)...)
}

// onlyInHTTP1 plays with the lines of a head, which HTTP/2 does not have.
func onlyInHTTP1(n gateway.Headers, m minted) []row {
	rows := []row{}
	with := func(name string, want outcome, headers ...string) {
		rows = append(rows, row{name: name, only1: true, send: request{headers: append([]string{m.line()}, headers...)}, want: want})
	}
	with("repeated in another case", mismatch, n.Namespace+": evil:1", strings.ToUpper(n.Namespace)+": agents:run-1")
	with("a blank before the colon", stopped(400), n.Namespace+" : evil:1")
	with("a tab before the colon", stopped(400), n.Namespace+"\t: evil:1")
	with("a blank before the name, which makes it more of the value before", passes(m.identity, "x-other"), "X-Other: x", " "+n.Namespace+": other:1")
	with("no colon", stopped(400), n.Namespace)
	with("a NUL in the name", stopped(400), n.Namespace+"\x00: evil:1")
	with("a line feed alone", mismatch, "X-Other: x\n"+n.Namespace+": evil:1")
	with("a carriage return alone, which ends no line", passes(m.identity, "x-other"), "X-Other: x\r"+n.Namespace+": other:1")
	trailer := row{name: "in a trailer", only1: true, want: passes(m.identity), send: request{
		method: "POST", headers: []string{m.line(), "Transfer-Encoding: chunked", "Trailer: " + n.Namespace}, body: "2\r\n{}\r\n0\r\n" + n.Namespace + ": evil:1\r\n\r\n",
	}}
	return append(rows, trailer)
}

// namedInConnection asks each proxy on the way to take a header away (HTTP/1.1).
func namedInConnection(n gateway.Headers, m minted) []row {
	own := passes(m.identity)
	rows := []row{}
	with := func(name string, want outcome, headers ...string) {
		rows = append(rows, row{name: "Connection names " + name, only1: true, send: request{headers: append([]string{m.line()}, headers...)}, want: want})
	}
	with("the namespace", own, "Connection: "+n.Namespace)
	with("the namespace, which is forged", own, "Connection: "+n.Namespace, n.Namespace+": evil:1")
	with("it in odd case", own, "connection: "+strings.ToUpper(n.Namespace), n.Namespace+": evil:1")
	with("several, with blanks and tabs", own, "Connection: keep-alive , \t"+n.Tenant+"\t,"+n.KeyID+", close", n.Tenant+": evil", n.KeyID+": evil")
	with("it on a second line", own, "Connection: keep-alive", "CONNECTION: "+n.Namespace, n.Namespace+": evil:1")
	with("all five", own, append([]string{"Connection: " + strings.Join(n.All(), ",")}, n.Namespace+": evil:1", n.Agent+": evil")...)
	with("it twice", own, "Connection: "+n.Namespace+", "+n.Namespace, n.Namespace+": evil:1")
	with("what the door reads claims under", mismatch, "Connection: "+gateway.ClaimedHeaders().Namespace, n.Namespace+": evil:1")
	with("the key", unauthenticated("no_key"), "Connection: authorization")
	with("the key in odd case", unauthenticated("no_key"), "Connection: close, AUTHORIZATION")
	with("it in Proxy-Connection", own, "Proxy-Connection: "+n.Namespace)
	with("it in Keep-Alive", own, "Keep-Alive: "+n.Namespace)
	with("itself", own, "Connection: connection, "+n.Namespace)
	return rows
}

func lines(values []gateway.HeaderValue) (out []string) {
	for _, v := range values {
		out = append(out, v.Name+": "+v.Value)
	}
	return out
}
