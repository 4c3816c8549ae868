package shut_test

import (
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
)

// The exchange and the door have clocks of their own. Up to key.Leeway between them is nobody's fault.
func TestClocksMayDifferByTheLeewayAndNoMore(t *testing.T) {
	const second = time.Second
	exchange, door := newClock(), newClock()
	start := exchange.Now()
	store := sqlite(t, exchange.Now)
	r := newReplica(t, store, door, gateway.DefaultHeaders())
	r.serve(t)
	s, i := newSite(t, r, plan{}), newIssuer(t, store, exchange)
	for _, c := range []struct {
		name  string
		skew  time.Duration // the door's clock, seen from the exchange's
		after time.Duration // since the key was minted
		want  key.Reason    // "" passes
	}{
		{"they agree, at once", 0, 0, ""},
		{"they agree, at the end", 0, keyLife - second, ""},
		{"the door is 5 s behind, at once", -5 * second, 0, ""},
		{"the door is 6 s behind, at once", -6 * second, 0, "not_yet_valid"},
		{"the door is 6 s behind, a second later", -6 * second, second, ""},
		{"the door is an hour behind", -time.Hour, 0, "not_yet_valid"},
		{"the door is 5 s ahead, at once", 5 * second, 0, ""},
		{"the door is 5 s ahead, just before the end", 5 * second, keyLife - second, ""},
		{"the door is 5 s ahead, at the end", 5 * second, keyLife, "expired"},
		{"the door is 6 s ahead, just before the end", 6 * second, keyLife - second, "expired"},
		{"the door is 5 s behind, past the end and within the leeway", -5 * second, keyLife + 9*second, ""},
		{"the door is 5 s behind, past the end and the leeway", -5 * second, keyLife + 10*second, "expired"},
		{"the door is an hour ahead", time.Hour, 0, "expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exchange.set(start)
			m := i.mint(t)
			exchange.set(start.Add(c.after))
			door.set(start.Add(c.after + c.skew))
			want := passes(m.identity)
			if c.want != "" {
				want = unauthenticated(c.want)
			}
			s.try(t, m, want)
			s.try(t, m, want) // and again, from memory
		})
	}
}
