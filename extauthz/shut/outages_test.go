package shut_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway"
)

// unavailable is an answer of a gateway that cannot find out: an outage, never a refusal, and never a yes.
var unavailable = outcome{status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable}

// byTheDoor is the same, said by the door.
var byTheDoor = outcome{status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable, reason: "unavailable"}

// try holds one request against an outcome, over HTTP/1.1.
func (s *site) try(t *testing.T, m minted, want outcome) {
	t.Helper()
	s.hold(t, request{headers: []string{m.line()}}, want, func(r request) answer { return http1(t, s.address(), r) })
}

func TestWhileTheDoorIsAwayNothingPasses(t *testing.T) {
	s, i := usual(t, plan{})
	m := i.mint(t)
	s.try(t, m, passes(m.identity))
	for range 3 {
		s.replica.stop()
		for range 3 {
			s.try(t, m, unavailable)
		}
		s.try(t, minted{text: "garbage"}, unavailable)
		s.replica.serve(t)
		s.try(t, m, passes(m.identity)) // the first request after it
	}
}

func TestADoorThatRestartsInTheMidstLosesNoRequestToTheWrongSide(t *testing.T) {
	s, i := usual(t, plan{})
	s.replica.run()
	good, bad := i.mint(t), i.revoke(t, i.mint(t))
	client := newHTTP2Client(t)
	var running atomic.Bool
	running.Store(true)
	results := make(chan [2]int)
	for _, text := range []string{good.text, bad.text} {
		go func() {
			count := [2]int{} // answered as when all is well, and 503
			for running.Load() {
				switch status := client.get(t, s, text); {
				case status == http.StatusOK && text == good.text, status == http.StatusUnauthorized && text == bad.text:
					count[0]++
				case status == http.StatusServiceUnavailable:
					count[1]++
				default:
					t.Errorf("answered %d", status)
				}
			}
			results <- count
		}()
	}
	for range 5 {
		time.Sleep(50 * time.Millisecond) // traffic, of which some meets the restart
		s.replica.stop()
		s.replica.serve(t)
	}
	running.Store(false)
	for range 2 {
		if count := <-results; count[0] == 0 {
			t.Errorf("%d were answered as they should be, %d 503: there was no traffic", count[0], count[1])
		}
	}
	s.try(t, good, passes(good.identity))
	s.try(t, bad, unauthenticated("revoked"))
}

func TestADoorThatIsTooSlowIsShut(t *testing.T) {
	const timeout = 300 * time.Millisecond
	s, i := usual(t, plan{timeout: timeout})
	m, known := i.mint(t), i.mint(t)
	envoySays := func(m minted, want int) time.Duration {
		t.Helper()
		before, began := s.backend.mark(), time.Now()
		got := http1(t, s.address(), request{headers: []string{m.line()}}.withDefaults())
		if got.status != want || want == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
			t.Errorf("answered %d %v %s, want %d", got.status, got.header, got.body, want)
		}
		if arrived := s.backend.since(before); (arrived != "") != (want == http.StatusOK) {
			t.Errorf("the backend saw %.300q", arrived)
		}
		return time.Since(began)
	}
	envoySays(known, http.StatusOK)
	stall := make(chan struct{})
	s.replica.store.stall.Store(&stall)
	for range 3 {
		if took := envoySays(m, http.StatusServiceUnavailable); took > 10*timeout {
			t.Errorf("took %s, with a timeout of %s", took, timeout)
		}
	}
	envoySays(known, http.StatusOK) // what the door knows it still answers
	s.replica.store.stall.Store(nil)
	close(stall)
	envoySays(m, http.StatusOK)
}

func TestWhileTheKeyStoreIsAwayOnlyFreshAnswersCount(t *testing.T) {
	at := newClock()
	store := sqlite(t, at.Now)
	r := newReplica(t, store, at, gateway.DefaultHeaders())
	r.serve(t)
	s, i := newSite(t, r, plan{}), newIssuer(t, store, at)
	warm, cold := i.mint(t), i.mint(t)
	s.try(t, warm, passes(warm.identity))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s.try(t, cold, byTheDoor)
	at.advance(ttl - time.Second)
	s.try(t, warm, passes(warm.identity)) // inside its TTL
	at.advance(time.Second)
	s.try(t, warm, byTheDoor)
}

// A gateway that starts before its door is shut until the door is there.
func TestAnEnvoyThatStartsBeforeItsDoorIsShut(t *testing.T) {
	at := newClock()
	store := sqlite(t, at.Now)
	r := newReplica(t, store, at, gateway.DefaultHeaders())
	s, i := newSite(t, r, plan{}), newIssuer(t, store, at)
	m := i.mint(t)
	s.try(t, m, unavailable)
	r.serve(t)
	s.try(t, m, passes(m.identity))
}
