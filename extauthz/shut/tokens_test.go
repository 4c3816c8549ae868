package shut_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"sallyport/internal/key"
)

func TestHostileTokensOpenNothing(t *testing.T) {
	s, i := usual(t, plan{})
	t.Run("the forger's own good key opens, or the rows below prove nothing", func(t *testing.T) {
		good := i.forge(t, nil, nil)
		s.run(t, []row{{name: "it", send: request{headers: []string{good.line()}}, want: passes(good.identity)}})
	})
	t.Run("shapes", func(t *testing.T) { s.run(t, shapes(i.mint(t))) })
	t.Run("signatures", func(t *testing.T) { s.run(t, signatures(t, i)) })
	t.Run("headers", func(t *testing.T) { s.run(t, tokenHeaders(t, i)) })
	t.Run("claims", func(t *testing.T) { s.run(t, claims(t, i)) })
	t.Run("members twice", func(t *testing.T) { s.run(t, membersTwice(t, i)) })
}

func bearer(text string) request { return request{headers: []string{"Authorization: Bearer " + text}} }

// shapes are no tokens at all. Envoy takes heads of up to 32 KiB.
func shapes(m minted) []row {
	parts := strings.Split(m.text, ".")
	rows := []row{}
	with := func(name string, want outcome, text string) {
		rows = append(rows, row{name: name, send: bearer(text), want: want})
	}
	with("60 KiB of dots", stopped(431), strings.Repeat(".", 60<<10))
	rows[0].http2 = notSpoken
	with("as many dots as Envoy takes", unauthenticated("malformed"), strings.Repeat(".", 31<<10))
	with("as many letters as Envoy takes", unauthenticated("malformed"), strings.Repeat("A", 31<<10))
	with("three parts, as long as Envoy takes", unauthenticated("malformed"), strings.Repeat("A", 15<<10)+"."+strings.Repeat("A", 15<<10)+".A")
	with("a good key with a long tail", unauthenticated("malformed"), m.text+strings.Repeat("A", 8<<10))
	with("two dots", unauthenticated("malformed"), "..")
	with("one dot", unauthenticated("malformed"), ".")
	with("one part", unauthenticated("malformed"), parts[0])
	with("two parts", unauthenticated("malformed"), parts[0]+"."+parts[1])
	with("four parts", unauthenticated("malformed"), m.text+"."+parts[2])
	with("five parts, as an encrypted one has", unauthenticated("malformed"), m.text+"."+parts[1]+"."+parts[2])
	with("no header", unauthenticated("malformed"), "."+parts[1]+"."+parts[2])
	with("no claims", unauthenticated("malformed"), parts[0]+".."+parts[2])
	with("no signature", unauthenticated("bad_signature"), parts[0]+"."+parts[1]+".")
	with("parts that are no JSON", unauthenticated("malformed"), "AAAA.BBBB.CCCC")
	with("parts that are JSON, and no objects", unauthenticated("malformed"), part("[]")+"."+part("[]")+"."+parts[2])
	with("null for all", unauthenticated("malformed"), part("null")+"."+part("null")+".")
	with("a header nested a thousand deep", unauthenticated("malformed"), part(strings.Repeat("[", 1000))+"."+parts[1]+"."+parts[2])
	with("standard base64", unauthenticated("malformed"), parts[0]+"."+parts[1]+".+/"+parts[2][2:])
	with("padding", unauthenticated("malformed"), m.text+"==")
	with("a last letter that decodes to the same bytes", unauthenticated("malformed"), m.text[:len(m.text)-1]+next(m.text[len(m.text)-1]))
	with("the namespace in plain", unauthenticated("malformed"), "agents:run-1")
	return rows
}

// next returns the next letter of base64url: the last letter of a signature has four bits that count for nothing.
func next(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return letters[strings.IndexByte(letters, c)+1:][:1]
}

// signatures say the right thing and are signed by the wrong hand, or by none.
func signatures(t *testing.T, i *issuer) []row {
	t.Helper()
	m := i.mint(t)
	parts, others := strings.Split(m.text, "."), strings.Split(i.mint(t).text, ".")
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(nil, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := i.private.Public().(ed25519.PublicKey)
	rows := []row{}
	with := func(name string, reason key.Reason, text string) {
		rows = append(rows, row{name: name, send: bearer(text), want: unauthenticated(reason)})
	}
	for alg, reason := range map[string]key.Reason{
		"none": "bad_signature", "None": "malformed", "NONE": "malformed", "nOnE": "malformed", "": "malformed", "eddsa": "malformed", "EdDSA\n": "malformed",
	} {
		input := part(encode(t, i.header(), members{"alg": alg})) + "." + part(encode(t, claimsOf(i.record(t)), nil))
		with("alg "+alg, reason, input+".")
		with("alg "+alg+", with a good key's signature", reason, input+"."+parts[2])
	}
	for name, secret := range map[string][]byte{
		"the public key": public, "the public key in base64": []byte(base64.RawURLEncoding.EncodeToString(public)), "nothing": nil,
	} {
		input := part(encode(t, i.header(), members{"alg": "HS256"})) + "." + part(encode(t, claimsOf(i.record(t)), nil))
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(input))
		with("HS256 with "+name+" as the secret", "bad_signature", input+"."+part(string(mac.Sum(nil))))
	}
	rs := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claimsOf(i.record(t))))
	rs.Header["typ"], rs.Header["kid"] = key.Type, i.kid
	text, err := rs.SignedString(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	with("RS256 with another's key", "bad_signature", text)
	with("alg of another case", "malformed", i.forge(t, members{"alg": "eddsa"}, nil).text)
	with("alg that is a number", "malformed", i.forge(t, members{"alg": 1}, nil).text)
	with("no alg", "malformed", i.forge(t, members{"alg": nil}, nil).text)

	another := *i
	another.private = stranger
	with("a stranger's signature under a known kid", "bad_signature", another.forge(t, nil, nil).text)
	another.kid = "stranger"
	with("a stranger's signature under its own kid", "unknown_signing_key", another.forge(t, nil, nil).text)
	with("another key's signature", "bad_signature", parts[0]+"."+parts[1]+"."+others[2])
	with("another key's claims", "bad_signature", parts[0]+"."+others[1]+"."+parts[2])
	with("half a signature", "bad_signature", parts[0]+"."+parts[1]+"."+part(string(make([]byte, ed25519.SignatureSize/2))))
	with("zeros", "bad_signature", parts[0]+"."+parts[1]+"."+part(string(make([]byte, ed25519.SignatureSize))))
	return rows
}

// tokenHeaders are signed well, and say something else of the key that signed, or of what they are.
func tokenHeaders(t *testing.T, i *issuer) []row {
	t.Helper()
	rows := []row{}
	with := func(name string, reason key.Reason, change members) {
		rows = append(rows, row{name: name, send: bearer(i.forge(t, change, nil).text), want: unauthenticated(reason)})
	}
	for name, typ := range map[string]any{
		"JWT": "JWT", "at+jwt": "at+jwt", "none": nil, "empty": "", "in upper case": strings.ToUpper(key.Type), "with application/": "application/" + key.Type,
		"a list": []string{key.Type}, "a number": 1,
	} {
		with("typ: "+name, "wrong_type", members{"typ": typ})
	}
	for name, kid := range map[string]any{
		"unknown": "0123456789abcdef", "none": nil, "empty": "", "a number": 7, "null": json.RawMessage("null"), "a list": []string{i.kid},
		"a path": "../../../../etc/passwd", "a device": "/dev/null", "a file URL": "file:///dev/null", "a URL": "https://evil.example/jwks.json",
		"SQL": "' OR 1=1 --", "a NUL after it": i.kid + "\x00", "a blank after it": i.kid + " ", "in upper case": strings.ToUpper(i.kid) + "X", "long": strings.Repeat("k", 2000),
		"a path to it": "x/../" + i.kid,
	} {
		with("kid: "+name, "unknown_signing_key", members{"kid": kid})
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	public := part(string(stranger.Public().(ed25519.PublicKey)))
	another := *i
	another.private = stranger
	for name, change := range map[string]members{
		"jwk": {"jwk": members{"kty": "OKP", "crv": "Ed25519", "x": public}}, "jku": {"jku": "https://evil.example/jwks.json"},
		"x5u": {"x5u": "https://evil.example/cert.pem"}, "x5c": {"x5c": []string{public}},
	} {
		rows = append(rows, row{name: "a stranger's key in " + name, send: bearer(another.forge(t, change, nil).text), want: unauthenticated("bad_signature")})
	}
	return rows
}

// claims are signed well, and one of them is wrong.
func claims(t *testing.T, i *issuer) []row {
	t.Helper()
	now := i.Now().Unix()
	rows := []row{}
	with := func(name string, want outcome, change members) {
		rows = append(rows, row{name: name, send: bearer(i.forge(t, nil, change).text), want: want})
	}
	with("another issuer", unauthenticated("wrong_issuer"), members{"iss": "else"})
	with("the issuer in another case", unauthenticated("wrong_issuer"), members{"iss": "Sallyport"})
	with("no issuer", unauthenticated("malformed"), members{"iss": nil})
	with("another audience", unauthenticated("wrong_audience"), members{"aud": "else"})
	with("other audiences", unauthenticated("wrong_audience"), members{"aud": []string{"else", "sallyport2"}})
	with("no audience", unauthenticated("malformed"), members{"aud": nil})
	with("an audience that is an object", unauthenticated("malformed"), members{"aud": members{"sallyport": true}})

	with("no exp", unauthenticated("malformed"), members{"exp": nil})
	with("exp null", unauthenticated("malformed"), members{"exp": json.RawMessage("null")})
	with("exp long ago", unauthenticated("expired"), members{"exp": now - 3600})
	with("exp 0", unauthenticated("expired"), members{"exp": 0})
	with("exp negative", unauthenticated("expired"), members{"exp": -now})
	with("exp as text that is no number", unauthenticated("malformed"), members{"exp": "tomorrow"})
	with("exp as text, long ago", unauthenticated("expired"), members{"exp": "1"})
	with("exp as a list", unauthenticated("malformed"), members{"exp": []int64{now + 60}})
	with("exp as a fraction, gone by", unauthenticated("expired"), members{"exp": float64(now) - 3600.5})
	with("exp true", unauthenticated("malformed"), members{"exp": true})
	with("exp beyond all time", unauthenticated("expired"), members{"exp": json.RawMessage("1e300")})
	with("exp beyond what a float holds", unauthenticated("malformed"), members{"exp": json.RawMessage("1e999")})
	with("exp NaN", unauthenticated("malformed"), members{"exp": "NaN"})
	with("no nbf", unauthenticated("malformed"), members{"nbf": nil})
	with("nbf to come", unauthenticated("not_yet_valid"), members{"nbf": now + 60})
	with("nbf beyond all time", unauthenticated("not_yet_valid"), members{"nbf": json.RawMessage("1e18")})
	with("nbf as a list", unauthenticated("malformed"), members{"nbf": []int64{now}})
	with("iat to come", unauthenticated("not_yet_valid"), members{"iat": now + 60})

	with("no id", unauthenticated("malformed"), members{"jti": nil})
	with("an id that nobody minted", unauthenticated("unknown_key"), members{"jti": key.NewID()})
	with("the id of another's key", unauthenticated("broken_key"), members{"jti": i.recordFor(t, "run-2").ID})
	with("no namespace", unauthenticated("malformed"), members{"namespace": nil})
	with("another's namespace", unauthenticated("broken_key"), members{"namespace": "agents:run-2"})
	with("another's agent", unauthenticated("broken_key"), members{"agent": "run-2"})
	with("another's session", unauthenticated("broken_key"), members{"session": "other"})
	with("a namespace that is a list", unauthenticated("malformed"), members{"namespace": []string{"agents:run-1"}})
	return rows
}

// membersTwice say two things under one name. Go's JSON takes the last: what is refused is what that says, and what the
// first says never counts.
func membersTwice(t *testing.T, i *issuer) []row {
	t.Helper()
	rows := []row{}
	with := func(name string, want func(minted) outcome, change func(header, claims string) (string, string)) {
		r := i.record(t)
		header, claims := change(encode(t, i.header(), nil), encode(t, claimsOf(r), nil))
		m := minted{r.ID, i.sign(header, claims), identityOf(r)}
		rows = append(rows, row{name: name, send: bearer(m.text), want: want(m)})
	}
	own := func(m minted) outcome { return passes(m.identity) }
	refused := func(reason key.Reason) func(minted) outcome {
		return func(minted) outcome { return unauthenticated(reason) }
	}
	with("namespace: another's first", own, func(h, c string) (string, string) { return h, twice(c, "namespace", "evil:1") })
	with("namespace: another's last", refused("broken_key"), func(h, c string) (string, string) { return h, c[:len(c)-1] + `,"namespace":"evil:1"}` })
	with("exp: past last", refused("expired"), func(h, c string) (string, string) { return h, c[:len(c)-1] + `,"exp":1}` })
	with("alg: none first", own, func(h, c string) (string, string) { return twice(h, "alg", "none"), c })
	with("alg: none last", refused("bad_signature"), func(h, c string) (string, string) { return h[:len(h)-1] + `,"alg":"none"}`, c })
	with("typ: JWT last", refused("wrong_type"), func(h, c string) (string, string) { return h[:len(h)-1] + `,"typ":"JWT"}`, c })
	with("kid: another last", refused("unknown_signing_key"), func(h, c string) (string, string) { return h[:len(h)-1] + `,"kid":"x"}`, c })
	return rows
}
