package extauthz_test

import (
	"testing"

	"sallyport/extauthz"
)

// maxWarmAllocs is what deciding about a key may allocate that was seen before. Counted, not timed: the same on any machine.
const maxWarmAllocs = 1

func TestAWarmCheckIsDecidedWithFewAllocations(t *testing.T) {
	w := newWorld(t)
	_, text := w.mint(t, testTTL)
	r := extauthz.Request{Authorization: lines("Bearer " + text)}
	w.warm(t, r)
	got := testing.AllocsPerRun(1000, func() { w.door.Decide(t.Context(), r) })
	if t.Logf("a warm check allocates %v times; %v are allowed", got, maxWarmAllocs); got > maxWarmAllocs {
		t.Error("too many")
	}
}

func BenchmarkWarmCheck(b *testing.B) {
	w := newWorld(b)
	_, text := w.mint(b, testTTL)
	r := extauthz.Request{Authorization: lines("Bearer " + text)}
	w.warm(b, r)
	for b.Loop() {
		if d := w.door.Decide(b.Context(), r); !d.Allowed() {
			b.Fatal(d.Reason)
		}
	}
}

// warm asks until the answer comes from both caches: the one of verified keys takes what it is given in its own time.
func (w *world) warm(t testing.TB, r extauthz.Request) {
	t.Helper()
	for w.verified.Stats().Hits == 0 {
		if d := w.door.Decide(t.Context(), r); !d.Allowed() {
			t.Fatal(d.Reason)
		}
	}
}
