package extauthz_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// history is a random life of a few keys, and what is true of them whatever the door believes.
type history struct {
	*world
	t     *testing.T
	rand  *rand.Rand
	keys  []*life
	ttl   time.Duration
	trace []string
}

type life struct {
	id, text string
	expires  time.Time
	revoked  time.Time // by the clock that the door goes by; zero: not revoked
	pushed   bool
}

func (h *history) note(format string, args ...any) {
	h.trace = append(h.trace, h.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (h *history) pick() *life { return h.keys[h.rand.IntN(len(h.keys))] }

// step does one thing that may happen.
func (h *history) step() {
	switch n := h.rand.IntN(100); {
	case n < 50:
		h.check(h.pick())
	case n < 58:
		ttl := time.Duration(1+h.rand.IntN(120)) * time.Second
		id, text := h.mint(h.t, ttl)
		h.keys = append(h.keys, &life{id: id, text: text, expires: h.Now().Add(ttl)})
		h.note("mint %s for %s", id, ttl)
	case n < 66:
		h.revokeOne(h.pick())
	case n < 86:
		d := time.Duration(h.rand.IntN(12_000)) * time.Millisecond
		h.Advance(d)
		h.note("%s later", d)
	case n < 89:
		h.setBack(time.Duration(h.rand.IntN(5_000)) * time.Millisecond)
	case n < 95:
		h.ttl = time.Duration(h.rand.IntN(60)) * time.Second
		check(h.t, h.cache.SetTTL(h.ttl))
		h.note("TTL %s", h.ttl)
	case n < 98:
		h.cache.Forget()
		h.note("pushes were missed")
	default:
		h.restart()
	}
}

func (h *history) revokeOne(k *life) {
	h.revoke(h.t, k.id)
	if k.revoked.IsZero() {
		k.revoked = h.Now()
	}
	if h.rand.IntN(2) == 0 {
		h.cache.Revoke(k.id, h.Now())
		k.pushed = true
	}
	h.note("revoke %s, pushed: %v", k.id, k.pushed)
}

func (h *history) setBack(d time.Duration) {
	h.Advance(-d)
	h.note("the clock is set back by %s", d)
}

func (h *history) restart() {
	var err error
	h.cache, err = extauthz.NewRevocationCache(h.store, extauthz.RevocationOptions{TTL: h.ttl, Size: 100, Now: h.Now})
	if err != nil {
		h.t.Fatal(err)
	}
	verifier := key.NewVerifier(key.NewKeySet(h.store, h.Now), key.DefaultIssuer, key.DefaultAudience, h.Now)
	h.door = extauthz.NewAuthorizer(verifier, h.cache, h.Now)
	for _, k := range h.keys {
		k.pushed = k.pushed || !k.revoked.IsZero() // a new door knows nothing, so it reads
	}
	h.note("restart")
}

// check asks with a key and holds the answer against what is true.
func (h *history) check(k *life) {
	d := h.ask(h.t, k.text)
	now := h.Now()
	h.note("ask %s: %s", k.id, d.Reason)
	complain := func(what string) {
		h.t.Errorf("%s:\n%s", what, strings.Join(h.trace, "\n"))
	}
	switch {
	case d.Allowed() && now.After(k.expires.Add(key.Leeway)):
		complain("allowed past its expiry and the leeway")
	case d.Allowed() && k.pushed:
		complain("allowed after a revocation that was pushed")
	case d.Allowed() && !k.revoked.IsZero() && now.Sub(k.revoked) >= h.ttl:
		complain(fmt.Sprintf("allowed %s after its revocation, with a TTL of %s", now.Sub(k.revoked), h.ttl))
	case !d.Allowed() && k.revoked.IsZero() && now.Before(k.expires) && d.Reason != extauthz.Reason(key.ReasonNotYetValid):
		complain("refused a good key")
	}
}

func TestWhateverHappensNoKeyIsHonouredTooLong(t *testing.T) {
	const histories, steps = 15, 250
	for seed := range uint64(histories) {
		h := &history{world: newWorld(t), t: t, rand: rand.New(rand.NewPCG(seed, 1)), ttl: testTTL}
		id, text := h.mint(t, time.Minute)
		h.keys = []*life{{id: id, text: text, expires: h.Now().Add(time.Minute)}}
		for range steps {
			h.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func FuzzNothingButAMintedKeyIsAllowed(f *testing.F) {
	w := newWorld(f)
	_, minted := w.mint(f, time.Hour)
	secret := key.NewSecret()
	w.add(f, keystore.Record{ID: secret.ID, Kind: keystore.Static, Namespace: "team", SecretHash: key.HashSecret(secret.Text), CreatedAt: start})
	parts := strings.Split(minted, ".")
	for _, seed := range []string{
		"", "Bearer", "Bearer ", "Bearer " + minted, "bearer " + secret.Text, "Bearer " + parts[0] + ".." + parts[2], "Bearer ..", "Basic " + minted,
		"Bearer " + minted + "," + minted, "Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer rcl_", "Bearer " + secret.Text + "0", "Bearer \xff\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		d := w.door.Decide(t.Context(), extauthz.Request{Authorization: []string{line}})
		if !d.Allowed() {
			if d.Denial.Status < 400 || d.Reason == extauthz.ReasonAllowed {
				t.Errorf("%q: %+v", line, d)
			}
			return
		}
		presented, err := key.FromAuthorization([]string{line})
		if err != nil || (presented != minted && presented != secret.Text) {
			t.Errorf("%q was allowed: %+v", line, d)
		}
	})
}
