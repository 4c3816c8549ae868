package extauthz_test

import (
	"errors"
	"testing"
	"time"
)

func TestStatsSayWhatTheTTLCostsAndWhatOthersWould(t *testing.T) {
	w := newWorld(t)
	_, text := w.mint(t, time.Hour)
	const seconds = 120
	for range seconds { // a request a second, under a TTL of 30 s
		if !w.ask(t, text).Allowed() {
			t.Fatal("refused")
		}
		w.Advance(time.Second)
	}
	s := w.cache.Stats()
	if s.Reads != 4 || s.Hits != seconds-4 || s.Misses != 4 || s.Entries != 1 || s.TTL != testTTL {
		t.Errorf("%+v", s)
	}
	for _, shadow := range s.Shadow {
		if want := uint64(max(1, seconds*time.Second/shadow.TTL)); shadow.Reads != want {
			t.Errorf("a TTL of %s would have read %d times, want %d", shadow.TTL, shadow.Reads, want)
		}
	}
	w.ask(t, text)
	w.Advance(7 * time.Second)
	if s := w.cache.Stats(); s.OldestTrusted != 7*time.Second {
		t.Errorf("the oldest answer trusted is %s old, want 7s", s.OldestTrusted)
	}
}

func TestStatsSayHowLongARevocationTook(t *testing.T) {
	w := newWorld(t)
	pushed, pushedText := w.mint(t, time.Hour)
	lost, lostText := w.mint(t, time.Hour)
	w.ask(t, pushedText)
	w.ask(t, lostText)
	w.revoke(t, pushed)
	w.revoke(t, lost)
	at := w.Now()
	w.Advance(100 * time.Millisecond)
	w.cache.Revoke(pushed, at)
	for range 3 { // only the first refusal counts
		w.ask(t, pushedText)
	}
	w.Advance(testTTL)
	w.ask(t, lostText)
	lag := w.cache.Stats().Lag
	if lag.Count != 2 || lag.Longest != testTTL+100*time.Millisecond || lag.Sum != lag.Longest+100*time.Millisecond {
		t.Errorf("%+v", lag)
	}
	if h := lag.Histogram(); h[0.05] != 0 || h[0.1] != 1 || h[30] != 1 || h[60] != 2 {
		t.Errorf("%v", h)
	}
}

func TestStatsCountFailedReadsAndUnknownKeys(t *testing.T) {
	w := newWorld(t)
	id, _ := w.mint(t, time.Hour)
	down := errors.New("down")
	w.store.down.Store(&down)
	_, _ = w.cache.Status(t.Context(), id) // it fails
	w.store.down.Store(nil)
	for range 3 {
		_, _ = w.cache.Status(t.Context(), "0000000000000000") // it does not exist
	}
	if s := w.cache.Stats(); s.Failures != 1 || s.Reads != 2 || s.UnknownHits != 2 {
		t.Errorf("%+v", s)
	}
}

func TestASmallerCacheForgetsTheLongestUnused(t *testing.T) {
	w := newWorld(t)
	var texts []string
	for range 5 {
		_, text := w.mint(t, time.Hour)
		w.ask(t, text)
		texts = append(texts, text)
	}
	check(t, w.cache.SetSize(2))
	if s := w.cache.Stats(); s.Entries != 2 || s.Size != 2 {
		t.Errorf("%+v", s)
	}
	before := w.store.reads.Load()
	w.ask(t, texts[4])
	w.ask(t, texts[0])
	if reads := w.store.reads.Load() - before; reads != 1 {
		t.Errorf("%d reads, want that of the one forgotten", reads)
	}
	if err := w.cache.SetSize(0); err == nil {
		t.Error("a cache without room was taken")
	}
}
