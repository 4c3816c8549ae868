package key_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/internal/key"
)

// What the corpus of FuzzVerify is signed with: a key of no worth, so that the corpus can hold good signatures under bad
// claims. It holds one key of each hostile kind, named after what is wrong with it.
const (
	corpusKID  = "corpus"
	corpusSeed = "a seed that signs nothing of wor" // as long as a seed is
)

// onlyKey is a key set of one.
type onlyKey struct{ public ed25519.PublicKey }

func (k onlyKey) PublicKey(_ context.Context, kid string) (ed25519.PublicKey, error) {
	if kid != corpusKID {
		return nil, &key.InvalidError{Reason: key.ReasonUnknownSigningKey}
	}
	return k.public, nil
}

// FuzzVerify holds what the verifier takes against a check that shares no code with it.
func FuzzVerify(f *testing.F) {
	private := ed25519.NewKeyFromSeed([]byte(corpusSeed))
	public := private.Public().(ed25519.PublicKey)
	now := start.Add(time.Minute)
	verifier := key.NewVerifier(onlyKey{public}, key.DefaultIssuer, key.DefaultAudience, func() time.Time { return now })
	good := corpusKey(private, `{"alg":"EdDSA","kid":"corpus","typ":"sallyport-key+jwt"}`, `{"iss":"sallyport","sub":"agents:run-1","aud":["sallyport"],"exp":1767324245,"nbf":1767323045,"iat":1767323045,"jti":"0123456789abcdef","namespace":"agents:run-1","tenant":"agents","agent":"run-1","session":"pod"}`)
	if _, err := verifier.Verify(f.Context(), good); err != nil {
		f.Fatalf("a good key is refused, so this proves nothing: %v", err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, presented string) {
		claims, err := verifier.Verify(t.Context(), presented)
		if err != nil {
			var invalid *key.InvalidError
			if !errors.As(err, &invalid) {
				t.Errorf("%q: %v is no *InvalidError", presented, err)
			}
			if claims != (key.Claims{}) {
				t.Errorf("%q: claims are told of a key that is not valid", presented)
			}
			return
		}
		signed(t, public, presented)
		if claims.ID == "" || claims.Namespace == "" || !now.Before(claims.Expires.Add(key.Leeway)) || claims.IssuedAt.After(now.Add(key.Leeway)) {
			t.Errorf("%q was taken: %+v", presented, claims)
		}
	})
}

func corpusKey(private ed25519.PrivateKey, header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	input := encode([]byte(header)) + "." + encode([]byte(claims))
	return input + "." + encode(ed25519.Sign(private, []byte(input)))
}

// signed fails unless the text is a JWT of the right type, in the one spelling there is of it, with a good signature.
func signed(t *testing.T, public ed25519.PublicKey, text string) {
	t.Helper()
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		t.Fatalf("%q was taken", text)
	}
	decoded := make([][]byte, len(parts))
	for i, p := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(p); err != nil {
			t.Fatalf("%q was taken: %v", text, err)
		}
	}
	var header struct{ Alg, Typ, Kid string }
	if err := json.Unmarshal(decoded[0], &header); err != nil || header.Alg != "EdDSA" || header.Typ != key.Type || header.Kid != corpusKID {
		t.Errorf("%q was taken: %+v, %v", text, header, err)
	}
	if !ed25519.Verify(public, []byte(parts[0]+"."+parts[1]), decoded[2]) {
		t.Errorf("%q was taken, and nobody signed it", text)
	}
}

// FuzzFromAuthorization gives the parser up to three lines.
func FuzzFromAuthorization(f *testing.F) {
	f.Add(uint8(1), "Bearer abc", "", "")
	f.Fuzz(func(t *testing.T, n uint8, first, second, third string) {
		lines := []string{first, second, third}[:n%4]
		got, err := key.FromAuthorization(lines)
		if err != nil {
			var invalid *key.InvalidError
			if !errors.As(err, &invalid) || got != "" {
				t.Errorf("%q: %q, %v", lines, got, err)
			}
			return
		}
		if len(lines) != 1 {
			t.Fatalf("a key was found in %d lines: %q", len(lines), lines)
		}
		scheme, found := strings.CutSuffix(strings.TrimSpace(first), got)
		if !found || !strings.HasSuffix(scheme, " ") || strings.ToLower(strings.TrimRight(scheme, " ")) != "bearer" {
			t.Errorf("%q: %q is not what follows the scheme", first, got)
		}
		if got == "" || strings.HasPrefix(got, " ") || strings.Contains(got, ",") {
			t.Errorf("%q: %q passes for a key", first, got)
		}
		if again, err := key.FromAuthorization([]string{"Bearer " + got}); err != nil || again != got {
			t.Errorf("%q is read as %q, and that as %q, %v", first, got, again, err)
		}
	})
}

// FuzzParseSecret holds the parser of opaque keys against a regular expression.
func FuzzParseSecret(f *testing.F) {
	form := regexp.MustCompile(`\Arcl_([0-9a-f]{16})_[0-9a-f]{64}\z`)
	f.Add("rcl_0123456789abcdef_" + strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, presented string) {
		id, ok := key.ParseSecret(presented)
		m := form.FindStringSubmatch(presented)
		if ok != (m != nil) || ok && (id != m[1] || !key.LooksLikeSecret(presented)) {
			t.Errorf("%q: %q, %v", presented, id, ok)
		}
	})
}
