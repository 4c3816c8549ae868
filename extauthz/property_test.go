package extauthz_test

import (
	"errors"
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
	t       *testing.T
	rand    *rand.Rand
	keys    []*life
	ttl     time.Duration
	elapsed time.Duration // since the beginning, whatever was done to the clock
	back    time.Duration // what a clock that was set back may give an answer that is kept, in all
	down    bool          // the store cannot be read
	trace   []string
}

const maxTTL = time.Minute // that a history sets

type life struct {
	id, text string
	expires  time.Time
	leeway   time.Duration // past expires
	pushed   bool          // the door heard of its revocation, or knows nothing older
	revoked  *revocation   // nil: it is not
}

// revocation is when a key was revoked, by the clock and in truth.
type revocation struct {
	at            time.Time
	elapsed, back time.Duration
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
		h.mintOne()
	case n < 65:
		h.revokeOne(h.pick(), true)
	case n < 83:
		h.pass(time.Duration(h.rand.IntN(12_000)) * time.Millisecond)
	case n < 86:
		h.setBack(time.Duration(h.rand.IntN(5_000)) * time.Millisecond)
	case n < 87:
		h.setBack(time.Duration(h.rand.IntN(7200)) * time.Second)
	case n < 90:
		h.revokeWhenJustRead(h.pick())
	case n < 92:
		h.ttl = time.Duration(h.rand.Int64N(int64(maxTTL)))
		check(h.t, h.cache.SetTTL(h.ttl))
		h.note("TTL %s", h.ttl)
	case n < 94:
		h.forget()
	case n < 96:
		h.outage(!h.down)
	case n < 98:
		check(h.t, h.signer.Rotate(h.t.Context()))
		h.note("a new signing key")
		h.pass(time.Second) // for as long a door may not know of it
	default:
		h.restart()
	}
}

// mintOne makes a key as the exchange does, or one as an admin does.
func (h *history) mintOne() {
	ttl := time.Duration(1+h.rand.IntN(120)) * time.Second
	k := &life{expires: h.Now().Add(ttl)}
	if h.rand.IntN(4) == 0 {
		s := key.NewSecret()
		k.id, k.text = s.ID, s.Text
		h.add(h.t, keystore.Record{ID: s.ID, Kind: keystore.Static, Namespace: "team", SecretHash: key.HashSecret(s.Text), CreatedAt: h.Now(), ExpiresAt: k.expires})
	} else {
		k.id, k.text = h.mint(h.t, ttl)
		k.leeway = key.Leeway
	}
	h.keys = append(h.keys, k)
	h.note("mint %s for %s", k.id, ttl)
}

func (h *history) pass(d time.Duration) {
	h.Advance(d)
	h.elapsed += d
	h.note("%s later", d)
}

func (h *history) outage(begins bool) {
	h.down = begins
	h.store.down.Store(nil)
	if begins {
		err := errors.New("the store is away")
		h.store.down.Store(&err)
	}
	h.note("the store is away: %v", begins)
}

// revokeWhenJustRead is the longest that a revocation may go unnoticed, if nobody tells of it.
func (h *history) revokeWhenJustRead(k *life) {
	h.forget()
	h.check(k)
	h.revokeOne(k, false)
	if h.rand.IntN(3) == 0 {
		h.setBack(2 * time.Hour)
		h.pass(maxTTL)
	}
	for _, d := range []time.Duration{h.ttl - time.Millisecond, time.Millisecond} {
		if d > 0 {
			h.pass(d)
		}
		h.check(k)
	}
}

func (h *history) revokeOne(k *life, push bool) {
	h.revoke(h.t, k.id)
	if k.revoked == nil {
		k.revoked = &revocation{at: h.Now(), elapsed: h.elapsed, back: h.back}
	}
	if push && h.rand.IntN(2) == 0 {
		h.cache.Revoke(k.id, h.Now())
		k.pushed = true
	}
	h.note("revoke %s, pushed: %v", k.id, k.pushed)
}

func (h *history) setBack(d time.Duration) {
	h.Advance(-d)
	h.back += min(d, maxTTL) // one that was read later than it is now is not believed
	h.note("the clock is set back by %s", d)
}

func (h *history) restart() {
	h.cache.Close()
	var err error
	h.cache, err = extauthz.NewRevocationCache(h.store, extauthz.RevocationOptions{TTL: h.ttl, Size: 100, Now: h.Now})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.cache.Close)
	h.verified.Close()
	verifier := key.NewVerifier(key.NewKeySet(h.store, h.Now), key.DefaultIssuer, key.DefaultAudience, h.Now)
	if h.verified, err = extauthz.NewVerifiedCache(verifier, 100, h.Now); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.verified.Close)
	h.door = extauthz.NewAuthorizer(h.verified, h.cache, h.Now)
	h.knowsNothing()
	h.note("restart")
}

// forget is what a door does that may have missed pushes.
func (h *history) forget() {
	h.cache.Forget()
	h.knowsNothing()
	h.note("pushes were missed")
}

// knowsNothing says that the door has to read whatever it is asked next.
func (h *history) knowsNothing() {
	for _, k := range h.keys {
		k.pushed = k.pushed || k.revoked != nil
	}
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
	case d.Allowed() && !now.Before(k.expires.Add(k.leeway)):
		complain("allowed past its expiry and the leeway")
	case d.Allowed() && k.pushed:
		complain("allowed after a revocation that was pushed")
	case d.Allowed() && k.revoked != nil && now.Sub(k.revoked.at) >= h.ttl:
		complain(fmt.Sprintf("allowed %s after its revocation, with a TTL of %s", now.Sub(k.revoked.at), h.ttl))
	case d.Allowed() && k.revoked != nil && h.elapsed-k.revoked.elapsed >= h.ttl+h.back-k.revoked.back:
		complain("a clock that was set back let it live for too long")
	case !d.Allowed() && h.down && d.Reason == extauthz.ReasonUnavailable:
		// What cannot be found out is no reason to complain.
	case !d.Allowed() && k.revoked == nil && now.Before(k.expires) && d.Reason != extauthz.Reason(key.ReasonNotYetValid):
		complain("refused a good key")
	}
}

func TestWhateverHappensNoKeyIsHonouredTooLong(t *testing.T) {
	const histories, steps = 15, 250
	for seed := range uint64(histories) {
		h := &history{world: newWorld(t), t: t, rand: rand.New(rand.NewPCG(seed, 1)), ttl: testTTL}
		id, text := h.mint(t, time.Minute)
		h.keys = []*life{{id: id, text: text, expires: h.Now().Add(time.Minute), leeway: key.Leeway}}
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
		d := w.door.Decide(t.Context(), extauthz.Request{Authorization: lines(line)})
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
