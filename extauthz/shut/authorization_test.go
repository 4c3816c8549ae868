package shut_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/keystore"
)

func TestOnlyOneBearerKeyOpens(t *testing.T) {
	s, i := usual(t, plan{})
	t.Run("authorization", func(t *testing.T) { s.run(t, authorizations(i.mint(t), i.mint(t))) })
	t.Run("keys that the store knows", func(t *testing.T) { s.run(t, storedKeys(t, i)) })
	t.Run("bytes", func(t *testing.T) { s.run(t, bytesThatDoNotBelong(i.mint(t))) })
}

// authorizations are what clients write where the key belongs; both keys are good.
func authorizations(m, other minted) []row {
	own := passes(m.identity)
	rows := []row{}
	with := func(name string, want outcome, headers ...string) {
		rows = append(rows, row{name: name, send: request{headers: headers}, want: want})
	}
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + m.text))
	with("none", unauthenticated("no_key"))
	with("one key", own, m.line())

	with("two lines, two keys", unauthenticated("several_keys"), m.line(), other.line())
	with("two lines, the same key", unauthenticated("several_keys"), m.line(), m.line())
	with("two lines, one of another scheme", unauthenticated("several_keys"), m.line(), "Authorization: Basic "+basic)
	with("two lines, another scheme first", unauthenticated("wrong_scheme"), "Authorization: Basic "+basic, m.line())
	with("two lines, the second empty, which says nothing", own, m.line(), "Authorization:")
	with("two lines, the first empty", own, "Authorization:", m.line())
	with("two keys on one line", unauthenticated("several_keys"), m.line()+", Bearer "+other.text)
	with("two keys without a scheme between", unauthenticated("several_keys"), m.line()+","+other.text)

	with("Basic", unauthenticated("wrong_scheme"), "Authorization: Basic "+basic)
	with("Digest", unauthenticated("wrong_scheme"), `Authorization: Digest username="`+m.text+`"`)
	with("Negotiate", unauthenticated("wrong_scheme"), "Authorization: Negotiate "+m.text)
	with("a made-up scheme that begins like it", unauthenticated("wrong_scheme"), "Authorization: Bearers "+m.text)
	with("no scheme", unauthenticated("wrong_scheme"), "Authorization: "+m.text)
	with("no blank after the scheme", unauthenticated("wrong_scheme"), "Authorization: Bearer"+m.text)
	with("a tab after the scheme", unauthenticated("wrong_scheme"), "Authorization: Bearer\t"+m.text)
	with("a colon after the scheme", unauthenticated("wrong_scheme"), "Authorization: Bearer: "+m.text)
	with("the scheme alone", unauthenticated("no_key"), "Authorization: Bearer")
	with("empty", unauthenticated("wrong_scheme"), "Authorization:")
	with("the scheme twice", unauthenticated("malformed"), "Authorization: Bearer Bearer "+m.text)
	with("the scheme in lower case", own, "Authorization: bearer "+m.text)
	with("the scheme in upper case", own, "Authorization: BEARER "+m.text)
	with("two blanks", own, "Authorization: Bearer  "+m.text)
	with("blanks at the end", own, m.line()+"  ")

	with("trailing junk", unauthenticated("malformed"), m.line()+" junk")
	with("a trailing dot", unauthenticated("malformed"), m.line()+".")
	with("a trailing comma", unauthenticated("several_keys"), m.line()+",")
	with("trailing padding", unauthenticated("malformed"), m.line()+"=")
	with("in quotes", unauthenticated("malformed"), `Authorization: Bearer "`+m.text+`"`)
	with("percent-encoded", unauthenticated("malformed"), "Authorization: Bearer "+strings.ReplaceAll(m.text, ".", "%2e"))
	with("a parameter", unauthenticated("malformed"), m.line()+`; realm="recall"`)

	with("in Proxy-Authorization", unauthenticated("no_key"), "proxy-authorization: Bearer "+m.text)
	with("in a cookie", unauthenticated("no_key"), "cookie: authorization="+m.text)
	with("in X-Authorization", unauthenticated("no_key"), "x-authorization: Bearer "+m.text)
	rows = append(rows,
		row{name: "in the query", send: request{path: "/v1/beliefs?access_token=" + m.text}, want: unauthenticated("no_key")},
		row{name: "in upper case, the name", send: request{headers: []string{"AUTHORIZATION: Bearer " + m.text}}, want: own, http2: notSpoken},
		row{name: "a blank before the colon", send: request{headers: []string{"Authorization : Bearer " + m.text}}, want: stopped(400), http2: notSpoken},
		row{name: "on a folded line", only1: true, send: request{headers: []string{"Authorization: Bearer", " " + m.text}}, want: own},
	)
	return rows
}

// storedKeys are well-formed, and what the store says of them decides.
func storedKeys(t *testing.T, i *issuer) []row {
	t.Helper()
	static := i.opaque(t, keystore.Static, time.Time{})
	revoked := i.opaque(t, keystore.Static, time.Time{})
	i.revoke(t, revoked)
	signed := i.mint(t)
	unknown := i.opaque(t, keystore.Static, time.Time{}).text
	rows := []row{}
	with := func(name, text string, want outcome) {
		rows = append(rows, row{name: name, send: request{headers: []string{"Authorization: Bearer " + text}}, want: want})
	}
	with("an admin-made key", static.text, passes(static.identity))
	with("a revoked admin-made key", revoked.text, unauthenticated("revoked"))
	with("a revoked signed key", i.revoke(t, i.mint(t)).text, unauthenticated("revoked"))
	with("an expired admin-made key", i.opaque(t, keystore.Static, i.Now()).text, unauthenticated("expired"))
	with("an admin key, which reaches no namespace", i.opaque(t, keystore.Admin, time.Time{}).text,
		outcome{status: 403, code: gateway.CodeNamespaceMismatch, reason: "admin_key"})
	with("another secret for a known id", "rcl_"+static.id+"_"+strings.Repeat("0", 64), unauthenticated("unknown_key"))
	with("the secret of another key", "rcl_"+static.id+unknown[len("rcl_")+16:], unauthenticated("unknown_key"))
	with("a signed key's id as an opaque key", "rcl_"+signed.id+"_"+strings.Repeat("0", 64), unauthenticated("unknown_key"))
	with("an opaque key in upper case", strings.ToUpper(static.text), unauthenticated("malformed"))
	with("an opaque key cut short", static.text[:len(static.text)-1], unauthenticated("malformed"))
	with("an opaque key and more", static.text+"0", unauthenticated("malformed"))
	return rows
}

// bytesThatDoNotBelong are not text, or would end a line or a string too early.
func bytesThatDoNotBelong(m minted) []row {
	rows := []row{}
	with := func(name string, want outcome, r request) {
		rows = append(rows, row{name: name, send: r, want: want})
	}
	key := func(line string) request { return request{headers: []string{line}} }
	other := func(line string) request { return request{headers: []string{m.line(), line}} }
	path := func(p string) request { return request{path: p, headers: []string{m.line()}} }

	with("no UTF-8 after the key", unauthenticated("malformed"), key(m.line()+"\xff\xfe"))
	with("no UTF-8 alone", unauthenticated("malformed"), key("Authorization: Bearer \xc3\x28"))
	with("half a character in the scheme", unauthenticated("wrong_scheme"), key("Authorization: \xe2\x82 "+m.text))
	with("a no-break space after the scheme", unauthenticated("wrong_scheme"), key("Authorization: Bearer\u00a0"+m.text))
	with("a full-width letter in the scheme", unauthenticated("wrong_scheme"), key("Authorization: Ｂearer "+m.text))
	with("a tab in the key", unauthenticated("malformed"), key("Authorization: Bearer "+m.text[:9]+"\t"+m.text[9:]))

	with("no UTF-8 in another header", passes(m.identity, "x-other"), other("x-other: \xff\xfe"))
	with("no UTF-8 in the request's id", passes(m.identity), other("x-request-id: \xff\xfe"))
	with("no UTF-8 in what is traced", passes(m.identity, "traceparent"), other("traceparent: \xff"))
	with("a tab in another header", passes(m.identity, "x-other"), other("x-other: a\tb"))

	for name, c := range map[string]string{"NUL": "\x00", "SOH": "\x01", "ESC": "\x1b", "DEL": "\x7f"} {
		with(name+" after the key", stopped(400), key(m.line()+c))
		with(name+" inside the key", stopped(400), key("Authorization: Bearer "+m.text[:9]+c+m.text[9:]))
		with(name+" in another header", stopped(400), other("x-other: a"+c+"b"))
		with(name+" in the path", stopped(400), path("/v1/a"+c+"b"))
	}
	with("no UTF-8 in the path", stopped(400), path("/v1/\xff"))
	with("no UTF-8 in the query", stopped(400), path("/v1/x?q=\xff"))
	for i := range rows {
		if rows[i].want.status == 400 {
			rows[i].http2 = notSpoken
		}
	}
	encoded, asItIs := passes(m.identity).at("/v1/%FF"), passes(m.identity)
	rows[len(rows)-2].http2, rows[len(rows)-1].http2 = &encoded, &asItIs
	return rows
}
