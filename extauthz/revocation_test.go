package extauthz_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

func TestARevokedKeyIsRefusedWithinTheTTLThoughNothingIsPushed(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Hour)
	w.ask(t, text)
	w.revoke(t, id)
	w.Advance(testTTL - time.Nanosecond)
	if !w.ask(t, text).Allowed() {
		t.Error("the cached answer was not used for its TTL")
	}
	w.Advance(time.Nanosecond)
	if w.ask(t, text).Allowed() {
		t.Error("allowed after the TTL")
	}
}

func TestAPushedRevocationIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Hour)
	w.ask(t, text)
	w.revoke(t, id)
	w.cache.Revoke(id, w.Now())
	if d := w.ask(t, text); d.Allowed() || d.Reason != extauthz.ReasonRevoked {
		t.Errorf("%+v", d)
	}
}

func TestARevocationDuringAReadIsNotOverwrittenByWhatTheReadSaw(t *testing.T) {
	for name, hear := range map[string]func(w *world, id string){
		"its push came":    func(w *world, id string) { w.cache.Revoke(id, w.Now()) },
		"pushes were lost": func(w *world, _ string) { w.cache.Forget() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id, text := w.mint(t, time.Hour)
			reading, goOn := make(chan struct{}), make(chan struct{})
			var first atomic.Bool
			hold := func() {
				if first.CompareAndSwap(false, true) {
					close(reading)
					<-goOn
				}
			}
			w.store.hold.Store(&hold)
			var wg sync.WaitGroup
			wg.Go(func() { w.ask(t, text) }) // may be allowed: it asked before the revocation
			<-reading
			w.revoke(t, id)
			hear(w, id)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if d := w.door.Decide(ctx, extauthz.Request{Authorization: lines("Bearer " + text)}); d.Reason != extauthz.ReasonRevoked {
				t.Errorf("a request after the revocation: %s", d.Reason)
			}
			close(goOn)
			wg.Wait()
			if d := w.ask(t, text); d.Allowed() {
				t.Error("the old answer was kept")
			}
		})
	}
}

func TestMissedPushesAreForgottenAnswers(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Hour)
	w.ask(t, text)
	w.revoke(t, id) // and the push is lost
	w.cache.Forget()
	if w.ask(t, text).Allowed() {
		t.Error("an answer from before the gap was used")
	}
}

func TestTheStoreIsAskedOnce(t *testing.T) {
	t.Run("by all who miss at the same time", func(t *testing.T) {
		w := newWorld(t)
		_, text := w.mint(t, time.Hour)
		w.ask(t, text) // the signature is known, so that the requests meet at the store
		w.cache.Forget()
		w.store.reads.Store(0)
		const callers = 50
		arrived, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		hold := func() { once.Do(func() { close(arrived) }); <-goOn }
		w.store.hold.Store(&hold)
		go func() { <-arrived; close(goOn) }()
		together(callers, func() {
			if !w.ask(t, text).Allowed() {
				t.Error("denied")
			}
		})
		// Those who come after the read find its answer; nobody reads again.
		if n := w.store.reads.Load(); n != 1 {
			t.Errorf("%d reads for %d callers", n, callers)
		}
	})
	t.Run("in a TTL", func(t *testing.T) {
		w := newWorld(t)
		_, text := w.mint(t, time.Hour)
		for range 10 {
			w.ask(t, text)
			w.Advance(time.Second)
		}
		if n := w.store.reads.Load(); n != 1 {
			t.Errorf("%d reads", n)
		}
	})
	t.Run("about an id that does not exist, for a moment", func(t *testing.T) {
		w := newWorld(t)
		invented := key.NewSecret().Text
		for range 10 {
			w.ask(t, invented)
		}
		if n := w.store.reads.Load(); n != 1 {
			t.Errorf("%d reads", n)
		}
		w.Advance(2 * time.Second)
		w.ask(t, invented)
		if n := w.store.reads.Load(); n != 2 {
			t.Errorf("%d reads later: a key made meanwhile would not be found", n)
		}
	})
}

func TestALoweredTTLBindsWhatIsCached(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Hour)
	w.ask(t, text)
	w.revoke(t, id)
	w.Advance(5 * time.Second)
	if !w.ask(t, text).Allowed() {
		t.Fatal("the cached answer was not used")
	}
	check(t, w.cache.SetTTL(5*time.Second))
	if w.ask(t, text).Allowed() {
		t.Error("the answer outlived the lowered TTL")
	}
}

func TestAClockThatGoesBackMakesNoAnswerImmortal(t *testing.T) {
	w := newWorld(t)
	id, text := w.mint(t, time.Hour)
	w.ask(t, text)
	w.revoke(t, id)
	w.Advance(-time.Second)
	if w.ask(t, text).Allowed() {
		t.Error("an answer from the future was used")
	}
}

func TestAnEntryDoesNotOutliveItsKey(t *testing.T) {
	w := newWorld(t)
	s := key.NewSecret()
	w.add(t, keystore.Record{
		ID: s.ID, Kind: keystore.Static, Namespace: "team", SecretHash: key.HashSecret(s.Text), CreatedAt: start, ExpiresAt: start.Add(10 * time.Second),
	})
	if !w.ask(t, s.Text).Allowed() {
		t.Fatal("not allowed")
	}
	w.Advance(10 * time.Second)
	w.ask(t, s.Text)
	if n := w.store.reads.Load(); n != 2 {
		t.Errorf("%d reads: the entry was used past the key's expiry", n)
	}
}

func TestAFailedReadIsNotKept(t *testing.T) {
	w := newWorld(t)
	id, _ := w.mint(t, time.Hour)
	down := errors.New("down")
	w.store.down.Store(&down)
	if _, err := w.cache.Status(t.Context(), id); !errors.Is(err, down) {
		t.Fatalf("err = %v", err)
	}
	w.store.down.Store(nil)
	if _, err := w.cache.Status(t.Context(), id); err != nil {
		t.Errorf("err = %v", err)
	}
}

func TestACallerWaitsNoLongerThanItMay(t *testing.T) {
	w := newWorld(t)
	id, _ := w.mint(t, time.Hour)
	goOn := make(chan struct{})
	hold := func() { <-goOn }
	w.store.hold.Store(&hold)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := w.cache.Status(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	close(goOn)
	if _, err := w.cache.Status(t.Context(), id); err != nil {
		t.Errorf("the read that went on is not used: %v", err)
	}
}

func TestSlowReadsHoldUpNoOther(t *testing.T) {
	w := newWorld(t)
	const slow = 20
	var arrived sync.WaitGroup
	arrived.Add(slow)
	goOn := make(chan struct{})
	hold := func() { arrived.Done(); <-goOn }
	w.store.hold.Store(&hold)
	var wg sync.WaitGroup
	for range slow {
		id, _ := w.mint(t, time.Hour)
		wg.Go(func() {
			if _, err := w.cache.Status(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	arrived.Wait() // all are in the store at once
	w.store.hold.Store(nil)
	id, _ := w.mint(t, time.Hour)
	if _, err := w.cache.Status(t.Context(), id); err != nil {
		t.Error(err)
	}
	close(goOn)
	wg.Wait()
}

func TestAClosedCacheHasNoGoroutinesAndAnswersAllTheSame(t *testing.T) {
	w := newWorld(t)
	id, _ := w.mint(t, time.Hour)
	w.cache.Close()
	w.cache.Close()
	if _, err := w.cache.Status(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func TestBadSizesAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, opts := range []extauthz.RevocationOptions{
		{TTL: -time.Second, Size: 10, Now: w.Now}, {TTL: time.Second, Size: 0, Now: w.Now}, {TTL: time.Second, Size: -1, Now: w.Now},
	} {
		if _, err := extauthz.NewRevocationCache(w.store, opts); err == nil {
			t.Errorf("%+v was taken", opts)
		}
	}
}
