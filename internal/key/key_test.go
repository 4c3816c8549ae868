package key_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sallyport/internal/key"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// published is a key store's part in this: it keeps what was published, counts reads, and can be down.
type published struct {
	mu    sync.Mutex
	keys  []key.VerificationKey
	reads int
	down  error
}

func (p *published) PublishVerificationKey(_ context.Context, k key.VerificationKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down != nil {
		return p.down
	}
	p.keys = append(p.keys, k)
	return nil
}

func (p *published) VerificationKeys(context.Context) ([]key.VerificationKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	return p.keys, p.down
}

// world is a signer and a verifier that share a clock and a store.
type world struct {
	now      time.Time
	store    *published
	signer   *key.Signer
	set      *key.KeySet
	verifier *key.Verifier
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{now: start, store: &published{}}
	clock := func() time.Time { return w.now }
	var err error
	w.signer, err = key.NewSigner(t.Context(), w.store, key.SignerOptions{
		Issuer: key.DefaultIssuer, Audience: key.DefaultAudience, MaxTTL: 15 * time.Minute, Lifetime: time.Hour, Now: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.set = key.NewKeySet(w.store, clock)
	w.verifier = key.NewVerifier(w.set, key.DefaultIssuer, key.DefaultAudience, clock)
	return w
}

func (w *world) claims() key.Claims {
	return key.Claims{
		ID: "0123456789abcdef", Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-pod", PodUID: "uid",
		ServiceAccount: "default", IssuedAt: w.now, Expires: w.now.Add(15 * time.Minute),
	}
}

func (w *world) sign(t testing.TB) string {
	t.Helper()
	text, err := w.signer.Sign(w.claims())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func wantReason(t *testing.T, err error, want key.Reason) {
	t.Helper()
	var invalid *key.InvalidError
	if !errors.As(err, &invalid) || invalid.Reason != want {
		t.Errorf("err = %v, want reason %s", err, want)
	}
}

func TestAKeySaysWhatWasSigned(t *testing.T) {
	w := newWorld(t)
	got, err := w.verifier.Verify(t.Context(), w.sign(t))
	if err != nil {
		t.Fatal(err)
	}
	want := w.claims()
	if !got.IssuedAt.Equal(want.IssuedAt) || !got.Expires.Equal(want.Expires) {
		t.Errorf("times = %v, %v", got.IssuedAt, got.Expires)
	}
	got.IssuedAt, got.Expires = want.IssuedAt, want.Expires
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAKeyIsValidFromIssueToExpiryGiveOrTakeTheLeeway(t *testing.T) {
	w := newWorld(t)
	text := w.sign(t)
	for _, c := range []struct {
		at   time.Duration
		want key.Reason // "" is valid
	}{
		{-key.Leeway - time.Second, key.ReasonNotYetValid},
		{-key.Leeway + time.Second, ""},
		{15*time.Minute + key.Leeway - time.Second, ""},
		{15*time.Minute + key.Leeway + time.Second, key.ReasonExpired},
	} {
		w.now = start.Add(c.at)
		_, err := w.verifier.Verify(t.Context(), text)
		if c.want == "" {
			if err != nil {
				t.Errorf("at %s: %v", c.at, err)
			}
			continue
		}
		wantReason(t, err, c.want)
	}
}

func TestASignerSignsNoLongerThanItMay(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*key.Claims){
		"longer than the maximum": func(c *key.Claims) { c.Expires = c.Expires.Add(time.Second) },
		"no life at all":          func(c *key.Claims) { c.Expires = c.IssuedAt },
	} {
		c := w.claims()
		change(&c)
		if _, err := w.signer.Sign(c); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
}

func TestRotation(t *testing.T) {
	t.Run("a new signing key is published before it signs, and old keys stay valid", func(t *testing.T) {
		w := newWorld(t)
		before := w.sign(t)
		w.now = start.Add(time.Hour)
		if !w.signer.Due() {
			t.Fatal("not due after its lifetime")
		}
		w.now = start.Add(10 * time.Minute)
		if err := w.signer.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{before, w.sign(t)} {
			if _, err := w.verifier.Verify(t.Context(), text); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("while none can be published the old one goes on, to the end that was published for it", func(t *testing.T) {
		w := newWorld(t)
		w.store.down = errors.New("down")
		w.now = start.Add(90 * time.Minute)
		if err := w.signer.Rotate(t.Context()); err == nil {
			t.Fatal("rotated without publishing")
		}
		w.sign(t)
		w.now = start.Add(2*time.Hour + time.Minute)
		if _, err := w.signer.Sign(w.claims()); err == nil {
			t.Error("signed a key that would outlive its published verification key")
		}
	})
	t.Run("the published end covers every key that was signed", func(t *testing.T) {
		w := newWorld(t)
		w.now = start.Add(2 * time.Hour)
		text := w.sign(t)
		w.now = w.now.Add(15*time.Minute + key.Leeway - time.Second)
		if _, err := w.verifier.Verify(t.Context(), text); err != nil {
			t.Error(err)
		}
	})
}

// forge signs claims as a stranger, or as the signer's own key would not.
func forge(t *testing.T, method jwt.SigningMethod, secret any, header map[string]any, claims jwt.MapClaims) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, claims)
	for name, value := range header {
		tok.Header[name] = value
	}
	text, err := tok.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsNotAKeyIsRefused(t *testing.T) {
	w := newWorld(t)
	good := w.sign(t)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	// A signing key of the test's own, published, so that what is forged fails for the reason that the case names.
	w.store.keys = append(w.store.keys, key.VerificationKey{ID: "mine", Public: public, NotAfter: start.Add(time.Hour)})
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{"typ": key.Type, "kid": "mine"}
	with := func(change map[string]any) jwt.MapClaims {
		c := jwt.MapClaims{
			"iss": key.DefaultIssuer, "aud": key.DefaultAudience, "jti": "x", "namespace": "a:b",
			"iat": start.Unix(), "nbf": start.Unix(), "exp": start.Add(time.Minute).Unix(),
		}
		for name, value := range change {
			if value == nil {
				delete(c, name)
			} else {
				c[name] = value
			}
		}
		return c
	}
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct {
		text string
		want key.Reason
	}{
		"nothing":                          {"", key.ReasonMalformed},
		"60 KiB of dots":                   {strings.Repeat(".", 60<<10), key.ReasonMalformed},
		"two dots":                         {"..", key.ReasonMalformed},
		"a key with a fourth part":         {good + ".x", key.ReasonMalformed},
		"a key cut short":                  {good[:len(good)-10], key.ReasonBadSignature},
		"another key's signature":          {parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), key.ReasonBadSignature},
		"alg none":                         {forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, header, with(nil)), key.ReasonBadSignature},
		"HS256 with the public key":        {forge(t, jwt.SigningMethodHS256, []byte(public), header, with(nil)), key.ReasonBadSignature},
		"RS256":                            {forge(t, jwt.SigningMethodRS256, rsaKey, header, with(nil)), key.ReasonBadSignature},
		"an ordinary JWT's typ":            {forge(t, jwt.SigningMethodEdDSA, private, map[string]any{"typ": "JWT", "kid": "mine"}, with(nil)), key.ReasonWrongType},
		"no typ":                           {forge(t, jwt.SigningMethodEdDSA, private, map[string]any{"typ": nil, "kid": "mine"}, with(nil)), key.ReasonWrongType},
		"an unknown kid":                   {forge(t, jwt.SigningMethodEdDSA, private, map[string]any{"typ": key.Type, "kid": "else"}, with(nil)), key.ReasonUnknownSigningKey},
		"a kid that is a number":           {forge(t, jwt.SigningMethodEdDSA, private, map[string]any{"typ": key.Type, "kid": 7}, with(nil)), key.ReasonUnknownSigningKey},
		"another issuer":                   {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"iss": "else"})), key.ReasonWrongIssuer},
		"another audience":                 {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"aud": "else"})), key.ReasonWrongAudience},
		"no audience":                      {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"aud": nil})), key.ReasonMalformed},
		"no expiry":                        {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"exp": nil})), key.ReasonMalformed},
		"no start":                         {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"nbf": nil})), key.ReasonMalformed},
		"a start to come":                  {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"nbf": start.Add(time.Minute).Unix()})), key.ReasonNotYetValid},
		"no id":                            {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"jti": nil})), key.ReasonMalformed},
		"no namespace":                     {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"namespace": nil})), key.ReasonMalformed},
		"a namespace that is not a string": {forge(t, jwt.SigningMethodEdDSA, private, header, with(map[string]any{"namespace": []int{1}})), key.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			w.now = w.now.Add(2 * time.Second) // so that an unknown kid is looked for each time
			_, err := w.verifier.Verify(t.Context(), c.text)
			wantReason(t, err, c.want)
			if err != nil && len(c.text) > 20 && strings.Contains(err.Error(), c.text[:20]) {
				t.Error("the error quotes what was presented")
			}
		})
	}
	w.now = start.Add(time.Minute)
	if _, err := w.verifier.Verify(t.Context(), forge(t, jwt.SigningMethodEdDSA, private, header, with(nil))); err != nil {
		t.Errorf("the forger's own good key is refused, so the cases above prove nothing: %v", err)
	}
}

func TestKeySet(t *testing.T) {
	t.Run("10,000 unknown kids ask the store once a second", func(t *testing.T) {
		w := newWorld(t)
		for range 10_000 {
			_, err := w.set.PublicKey(t.Context(), key.NewID())
			wantReason(t, err, key.ReasonUnknownSigningKey)
		}
		if w.store.reads != 1 {
			t.Errorf("%d reads", w.store.reads)
		}
		w.now = w.now.Add(time.Second)
		_, err := w.set.PublicKey(t.Context(), "else")
		wantReason(t, err, key.ReasonUnknownSigningKey)
		if w.store.reads != 2 {
			t.Errorf("%d reads a second later", w.store.reads)
		}
	})
	t.Run("a store that is down makes an unknown kid unavailable, and known ones go on", func(t *testing.T) {
		w := newWorld(t)
		text := w.sign(t)
		if _, err := w.verifier.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		w.store.down = errors.New("down")
		w.now = w.now.Add(2 * time.Second)
		for range 2 { // the second time the failure is remembered for a moment
			if _, err := w.set.PublicKey(t.Context(), "else"); !errors.Is(err, key.ErrUnavailable) {
				t.Errorf("err = %v", err)
			}
		}
		if err := w.set.Refresh(t.Context()); err == nil {
			t.Error("the refresh said nothing")
		}
		if _, err := w.verifier.Verify(t.Context(), text); err != nil {
			t.Error(err)
		}
	})
	t.Run("a key that was withdrawn is gone after the next refresh, one that ended is gone at once", func(t *testing.T) {
		w := newWorld(t)
		if err := w.set.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		kid, end := w.store.keys[0].ID, w.store.keys[0].NotAfter
		w.now = end.Add(key.Leeway + time.Second)
		_, err := w.set.PublicKey(t.Context(), kid)
		wantReason(t, err, key.ReasonUnknownSigningKey)
		w.now = start
		w.store.keys = nil
		if err := w.set.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = w.set.PublicKey(t.Context(), kid)
		wantReason(t, err, key.ReasonUnknownSigningKey)
	})
}

func TestFromAuthorization(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
		err   key.Reason
	}{
		{[]string{"Bearer abc"}, "abc", ""},
		{[]string{"bearer abc"}, "abc", ""},
		{[]string{" BEARER   abc "}, "abc", ""},
		{nil, "", key.ReasonNoKey},
		{[]string{"Bearer"}, "", key.ReasonNoKey},
		{[]string{"Bearer "}, "", key.ReasonNoKey},
		{[]string{""}, "", key.ReasonWrongScheme},
		{[]string{"abc"}, "", key.ReasonWrongScheme},
		{[]string{"Basic abc"}, "", key.ReasonWrongScheme},
		{[]string{"Bearer abc", "Bearer abc"}, "", key.ReasonSeveralKeys},
		{[]string{"Bearer abc,Bearer def"}, "", key.ReasonSeveralKeys},
	} {
		got, err := key.FromAuthorization(c.lines)
		if c.err != "" {
			wantReason(t, err, c.err)
		} else if err != nil || got != c.want {
			t.Errorf("%q: %q, %v", c.lines, got, err)
		}
	}
}

func TestSecret(t *testing.T) {
	s := key.NewSecret()
	id, ok := key.ParseSecret(s.Text)
	if !ok || id != s.ID || !key.LooksLikeSecret(s.Text) {
		t.Fatalf("%q is not parsed as what it is", s.Text)
	}
	if !key.MatchesHash(s.Text, key.HashSecret(s.Text)) || key.MatchesHash(key.NewSecret().Text, key.HashSecret(s.Text)) || key.MatchesHash(s.Text, nil) {
		t.Error("hashes are not told apart")
	}
	for _, bad := range []string{
		"", "rcl_", s.Text[:len(s.Text)-1], s.Text + "0", strings.ToUpper(s.Text), strings.Replace(s.Text[4:], "_", "-", 1), "rcl_" + strings.Repeat("_", 81),
		"rcl_" + s.ID + "_" + strings.Repeat("g", 64),
	} {
		if _, ok := key.ParseSecret(bad); ok {
			t.Errorf("%q passes for a key", bad)
		}
	}
}

func TestJWKSHoldsPublicHalvesThatVerify(t *testing.T) {
	w := newWorld(t)
	text, err := key.JWKS(w.store.keys)
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	x, err := base64.RawURLEncoding.DecodeString(set.Keys[0]["x"])
	if err != nil {
		t.Fatal(err)
	}
	if _, private := set.Keys[0]["d"]; private || set.Keys[0]["alg"] != "EdDSA" || set.Keys[0]["crv"] != "Ed25519" {
		t.Errorf("%s", text)
	}
	parsed, err := jwt.Parse(w.sign(t), func(tok *jwt.Token) (any, error) {
		if tok.Header["kid"] != set.Keys[0]["kid"] {
			t.Errorf("kid = %v", tok.Header["kid"])
		}
		return ed25519.PublicKey(x), nil
	}, jwt.WithTimeFunc(func() time.Time { return w.now }))
	if err != nil || !parsed.Valid {
		t.Errorf("a stranger with the key set cannot verify: %v", err)
	}
	if empty, err := key.JWKS(nil); err != nil || string(empty) != `{"keys":[]}` {
		t.Errorf("%s, %v", empty, err)
	}
}
