package keystore_test

import (
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

func TestWhichStoredKeysCount(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good, other := key.NewSecret().Text, key.NewSecret().Text
	opaque := func(kind keystore.Kind, change func(*keystore.Record)) keystore.State {
		r := keystore.Record{Kind: kind, SecretHash: key.HashSecret(good)}
		change(&r)
		return r.State()
	}
	as := func(*keystore.Record) {}
	revoked := func(r *keystore.Record) { r.RevokedAt = now }
	expires := func(at time.Time) func(*keystore.Record) { return func(r *keystore.Record) { r.ExpiresAt = at } }
	for name, c := range map[string]struct {
		state     keystore.State
		presented string
		want      keystore.Refusal
	}{
		"a static key":                       {opaque(keystore.Static, as), good, ""},
		"an admin key":                       {opaque(keystore.Admin, as), good, ""},
		"one that expires later":             {opaque(keystore.Static, expires(now.Add(time.Nanosecond))), good, ""},
		"one that expires now":               {opaque(keystore.Static, expires(now)), good, keystore.RefusedExpired},
		"one that was revoked":               {opaque(keystore.Admin, revoked), good, keystore.RefusedRevoked},
		"a revoked one, with another secret": {opaque(keystore.Static, revoked), other, keystore.RefusedUnknown},
		"an expired one, with another one":   {opaque(keystore.Static, expires(now)), other, keystore.RefusedUnknown},
		"a signed key's id":                  {keystore.Record{Kind: keystore.Signed}.State(), good, keystore.RefusedUnknown},
		"a signed key's id and its hash":     {opaque(keystore.Signed, as), good, keystore.RefusedUnknown},
	} {
		if got := c.state.RefuseOpaque(c.presented, now); got != c.want {
			t.Errorf("opaque, %s: %q, want %q", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		state keystore.State
		want  keystore.Refusal
	}{
		"a key of a pod":         {keystore.Record{Kind: keystore.Signed}.State(), ""},
		"one that was revoked":   {keystore.Record{Kind: keystore.Signed, RevokedAt: now}.State(), keystore.RefusedRevoked},
		"the id of a static one": {opaque(keystore.Static, as), keystore.RefusedUnknown},
		"the id of an admin key": {opaque(keystore.Admin, revoked), keystore.RefusedUnknown},
	} {
		if got := c.state.RefuseSigned(); got != c.want {
			t.Errorf("signed, %s: %q, want %q", name, got, c.want)
		}
	}
}
