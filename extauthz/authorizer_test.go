package extauthz_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/gateway"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

func TestAGoodKeyIsAllowedAndNamesItsOwner(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Minute)
	d := w.ask(t, text)
	want := gateway.Identity{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "pod", KeyID: id}
	if !d.Allowed() || d.Identity != want || !d.Expires.Equal(start.Add(time.Minute)) || d.Reason != extauthz.ReasonAllowed {
		t.Errorf("%+v", d)
	}
}

func TestDecisions(t *testing.T) {
	w := newWorld(t)
	add := func(r keystore.Record) string {
		s := key.NewSecret()
		r.ID, r.SecretHash, r.CreatedAt = s.ID, key.HashSecret(s.Text), start
		w.add(t, r)
		return s.Text
	}
	static := add(keystore.Record{Kind: keystore.Static, Namespace: "team"})
	expired := add(keystore.Record{Kind: keystore.Static, Namespace: "team", ExpiresAt: start})
	admin := add(keystore.Record{Kind: keystore.Admin})
	revokedStatic := add(keystore.Record{Kind: keystore.Static, Namespace: "team"})
	w.revoke(t, revokedStatic[4:20])
	signedID, signed := w.mint(t, time.Minute)
	revokedID, revoked := w.mint(t, time.Minute)
	w.revoke(t, revokedID)
	stranger := keystore.Record{
		ID: "ffffffffffffffff", Namespace: "agents:run-1", CreatedAt: start, ExpiresAt: start.Add(time.Minute),
	}
	other := keystore.Record{ // what was minted under the id is somebody else's
		ID: signedID, Namespace: "agents:run-2", Tenant: "agents", Agent: "run-2", Session: "pod", CreatedAt: start, ExpiresAt: start.Add(time.Minute),
	}
	longer := other // and of this one the time is
	longer.Namespace, longer.Tenant, longer.Agent, longer.ExpiresAt = "agents:run-1", "agents", "run-1", start.Add(2*time.Minute)
	odd := keystore.Record{
		ID: "eeeeeeeeeeeeeeee", Kind: keystore.Signed, Namespace: "agents:run-1", Session: "a\nb", CreatedAt: start, ExpiresAt: start.Add(time.Minute),
	}
	w.add(t, odd)

	for name, c := range map[string]struct {
		lines  []string
		status int // 0: allowed
		reason extauthz.Reason
	}{
		"a signed key":                              {[]string{"Bearer " + signed}, 0, extauthz.ReasonAllowed},
		"an admin-made key":                         {[]string{"Bearer " + static}, 0, extauthz.ReasonAllowed},
		"nothing":                                   {nil, 401, "no_key"},
		"two keys":                                  {[]string{"Bearer " + signed, "Bearer " + signed}, 401, "several_keys"},
		"two keys joined by a proxy":                {[]string{"Bearer " + signed + ",Bearer " + signed}, 401, "several_keys"},
		"another scheme":                            {[]string{"Basic " + signed}, 401, "wrong_scheme"},
		"a bare key":                                {[]string{signed}, 401, "wrong_scheme"},
		"garbage":                                   {[]string{"Bearer x"}, 401, "malformed"},
		"garbage of an opaque key's form":           {[]string{"Bearer rcl_x"}, 401, "malformed"},
		"a revoked signed key":                      {[]string{"Bearer " + revoked}, 401, "revoked"},
		"a revoked admin-made key":                  {[]string{"Bearer " + revokedStatic}, 401, "revoked"},
		"an expired admin-made key":                 {[]string{"Bearer " + expired}, 401, "expired"},
		"an admin key":                              {[]string{"Bearer " + admin}, 403, "admin_key"},
		"an opaque key that nobody made":            {[]string{"Bearer " + key.NewSecret().Text}, 401, "unknown_key"},
		"a known id with another secret":            {[]string{"Bearer " + static[:len(static)-1] + flip(static)}, 401, "unknown_key"},
		"a revoked id with another secret":          {[]string{"Bearer " + revokedStatic[:len(static)-1] + flip(revokedStatic)}, 401, "unknown_key"},
		"a signed key's id as an opaque key":        {[]string{"Bearer rcl_" + signedID + "_" + strings.Repeat("0", 64)}, 401, "unknown_key"},
		"a signed key that was never stored":        {[]string{"Bearer " + w.sign(t, stranger)}, 401, "unknown_key"},
		"a signed key that differs from its record": {[]string{"Bearer " + w.sign(t, other)}, 401, "broken_key"},
		"a signed key that outlives its record":     {[]string{"Bearer " + w.sign(t, longer)}, 401, "broken_key"},
		"a key that no header can carry":            {[]string{"Bearer " + w.sign(t, odd)}, 401, "broken_key"},
	} {
		t.Run(name, func(t *testing.T) {
			d := w.door.Decide(t.Context(), extauthz.Request{Authorization: lines(c.lines...)})
			if d.Reason != c.reason {
				t.Errorf("reason = %s, want %s", d.Reason, c.reason)
			}
			if c.status == 0 {
				if !d.Allowed() {
					t.Errorf("denied: %v", d.Denial)
				}
				return
			}
			if d.Allowed() || d.Denial.Status != c.status {
				t.Fatalf("got %+v, want status %d", d.Denial, c.status)
			}
			if strings.Contains(d.Denial.Error(), "eyJ") || strings.Contains(d.Denial.Error(), "rcl_") {
				t.Errorf("the denial quotes the key: %s", d.Denial.Error())
			}
		})
	}
}

// flip returns a digit other than the last of s.
func flip(s string) string {
	if s[len(s)-1] == '0' {
		return "1"
	}
	return "0"
}

func TestWhatAClientClaimsMustNotContradictItsKey(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Minute)
	for _, c := range []struct {
		name, value string
		allowed     bool
	}{
		{"namespace", "agents:run-1", true},
		{"NAMESPACE", "agents:run-1", true},
		{"namespace", "agents:run-2", false},
		{"Namespace", "agents:run-2", false},
		{"namespace", "", false},
		{"namespace", "agents:run-1 ", false},
		{"tenant", "agents", true},
		{"tenant", "other", false},
		{"agent", "run-2", false},
		{"session", "other", false},
		{"key-id", id, true},
		{"key_id", "0", false},
		{"color", "blue", true}, // means nothing: it is removed on the way
	} {
		d := w.door.Decide(t.Context(), extauthz.Request{
			Authorization: lines("Bearer " + text),
			Claimed:       []gateway.HeaderValue{{Name: "namespace", Value: "agents:run-1"}, {Name: c.name, Value: c.value}},
		})
		if d.Allowed() != c.allowed {
			t.Errorf("%s: %q: allowed = %v", c.name, c.value, d.Allowed())
		}
		if !d.Allowed() && (d.Denial.Status != 403 || d.Denial.Code != gateway.CodeNamespaceMismatch) {
			t.Errorf("%s: %q: %+v", c.name, c.value, d.Denial)
		}
	}
	d := w.door.Decide(t.Context(), extauthz.Request{Claimed: []gateway.HeaderValue{{Name: "namespace", Value: "agents:run-1"}}})
	if d.Allowed() || d.Denial.Status != 401 {
		t.Errorf("a claim without a key: %+v", d)
	}
}

func TestTheDoorIsShutWhileNothingCanBeFoundOut(t *testing.T) {
	down := errors.New("disk on fire, password=hunter2")
	t.Run("about a key's revocation", func(t *testing.T) {
		w := newWorld(t)
		_, warm := w.mint(t, time.Hour)
		_, cold := w.mint(t, time.Hour)
		if !w.ask(t, warm).Allowed() {
			t.Fatal("not allowed while all is well")
		}
		w.store.down.Store(&down)
		if d := w.ask(t, warm); !d.Allowed() {
			t.Errorf("an answer inside its TTL is not used: %+v", d.Denial)
		}
		if !isUnavailable(w.ask(t, cold)) {
			t.Error("a key of which nothing is known is not answered 503")
		}
		w.Advance(testTTL)
		if !isUnavailable(w.ask(t, warm)) {
			t.Error("an answer past its TTL is still used")
		}
		w.store.down.Store(nil)
		if !w.ask(t, warm).Allowed() || !w.ask(t, cold).Allowed() {
			t.Error("recovery is not immediate")
		}
	})
	t.Run("about verification keys", func(t *testing.T) {
		w := newWorld(t)
		_, text := w.mint(t, time.Hour)
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
		if !isUnavailable(w.ask(t, text)) {
			t.Error("not answered 503")
		}
	})
}

func isUnavailable(d extauthz.Decision) bool {
	return !d.Allowed() && d.Denial.Status == 503 && d.Denial.RetryAfter > 0 && d.Reason == extauthz.ReasonUnavailable &&
		!strings.Contains(d.Denial.Message, "hunter2")
}

func TestAKeyIsRefusedAfterItsExpiryThoughItsSignatureIsRemembered(t *testing.T) {
	w := newWorld(t)
	_, text := w.mint(t, time.Minute)
	for range 50 { // ristretto takes entries in its own time
		if !w.ask(t, text).Allowed() {
			t.Fatal("not allowed")
		}
	}
	w.Advance(time.Minute + key.Leeway - time.Second)
	if d := w.ask(t, text); !d.Allowed() {
		t.Errorf("refused within the leeway: %+v", d.Denial)
	}
	w.Advance(time.Second * 2)
	if d := w.ask(t, text); d.Allowed() || d.Reason != "expired" {
		t.Errorf("%+v", d)
	}
}
