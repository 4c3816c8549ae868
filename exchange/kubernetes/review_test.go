package kubernetes_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sallyport/exchange/kubernetes/kubetest"
)

func TestATokenThatIsNotValidIsRefusedInWordsOfOurOwn(t *testing.T) {
	r := newRig(t, defaults())
	pod := r.Pod("solo", "default")
	good := r.Token(pod, audience)
	same := func(jwt.MapClaims) {}
	signature := good[:len(good)-10] + strings.Repeat("A", 10)
	legacy := func(c jwt.MapClaims) { delete(c, "aud"); delete(c, "exp") }
	for what, c := range map[string]struct{ token, says string }{
		"without an audience":     {r.cluster.Resign(t, good, legacy), `project one with audience "recall"`},
		"wrong audience":          {r.Token(pod, "vault"), `project one with audience "recall"`},
		"the API server's own":    {r.Token(pod), `project one with audience "recall"`},
		"expired":                 {r.cluster.Resign(t, good, expire(time.Hour)), "has expired"},
		"no expiry":               {r.cluster.Resign(t, good, func(c jwt.MapClaims) { delete(c, "exp") }), "never expires"},
		"another issuer":          {r.cluster.Resign(t, good, func(c jwt.MapClaims) { c["iss"] = "https://example.com" }), "does not accept"},
		"another key":             {r.cluster.Forge(t, good, same), "does not accept"},
		"another pod's UID":       {r.cluster.Resign(t, good, rebind), "does not accept"},
		"bad signature":           {signature, "does not accept"},
		"garbage":                 {"garbage", "not a service-account token"},
		"garbage in three parts":  {"a.b.c", "not a service-account token"},
		"longer than any token":   {good + strings.Repeat("A", 10<<10), "longer than any"},
		"not a service account's": {r.cluster.Resign(t, good, func(c jwt.MapClaims) { c["sub"] = "alice"; delete(c, "kubernetes.io") }), "does not accept"},
	} {
		t.Run(what, func(t *testing.T) {
			a := r.exchange(c.token)
			r.in(t).refused(a, http.StatusUnauthorized, "unauthenticated", c.says)
			if a.header.Get("WWW-Authenticate") == "" {
				t.Error("a 401 without WWW-Authenticate")
			}
		})
	}
	t.Run("several audiences, ours among them, are good", func(t *testing.T) {
		r.gets(r.exchange(r.Token(pod, "vault", audience)), "solo")
	})
	t.Run("neither the log nor an answer holds a token", func(t *testing.T) {
		for _, part := range strings.Split(good, ".")[1:] {
			if strings.Contains(r.log.String(), part) {
				t.Error("the log holds part of a token")
			}
		}
	})
}

func expire(ago time.Duration) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) {
		end := time.Now().Add(-ago)
		c["exp"], c["iat"], c["nbf"] = end.Unix(), end.Add(-time.Hour).Unix(), end.Add(-time.Hour).Unix()
	}
}

func rebind(c jwt.MapClaims) {
	c["kubernetes.io"].(map[string]any)["pod"].(map[string]any)["uid"] = "0b8f0b8e-0000-0000-0000-000000000000"
}

func reviews(calls []kubetest.Call) (n int) {
	for _, c := range calls {
		if strings.HasSuffix(c.URI, "/tokenreviews") {
			n++
		}
	}
	return n
}

func TestATokenRefusedIsRememberedForSecondsAndOneNotEvenPossibleNeverAsked(t *testing.T) {
	r := newRig(t, defaults())
	pod := r.Pod("solo", "default")
	good := r.Token(pod, audience)
	forged := r.cluster.Forge(t, good, func(jwt.MapClaims) {})
	for range 20 {
		r.refused(r.exchange(forged), http.StatusUnauthorized, "unauthenticated")
		r.refused(r.exchange("garbage"), http.StatusUnauthorized, "unauthenticated")
		r.refused(r.exchange(r.Token(pod, "vault")), http.StatusUnauthorized, "unauthenticated")
	}
	if n := reviews(r.cluster.Calls(t, r.userAgent)); n != 1 {
		t.Errorf("%d TokenReviews for one refused token, want 1", n)
	}
	r.gets(r.exchange(good), "solo") // another token of the same pod is another matter
}

func TestExchangesOfOneTokenAtOnceAreOneTokenReview(t *testing.T) {
	s := defaults()
	cluster := kubetest.Shared(t)
	proxy := cluster.Proxy(t)
	agent := userAgent(t)
	s.config = proxy.Config(cluster.ExchangeConfig(t, agent))
	r := newRig(t, s)
	token := r.Token(r.Pod("solo", "default"), audience)

	// The first review waits until all have asked.
	const many = 20
	release := make(chan struct{})
	var once sync.Once
	proxy.Fault(func(request *http.Request) http.HandlerFunc {
		if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
			once.Do(func() { <-release })
		}
		return nil
	})
	var wg sync.WaitGroup
	answers := make(chan answer, many)
	for range many {
		wg.Go(func() {
			answers <- r.exchange(token)
		})
	}
	r.eventually("all requests are inside", func() bool { return r.inside.Load() == many })
	close(release)
	wg.Wait()
	close(answers)
	keys := map[string]bool{}
	for a := range answers {
		keys[r.gets(a, "solo").body.ID] = true
	}
	if n := reviews(cluster.Calls(t, agent)); n != 1 || len(keys) != many {
		t.Errorf("%d TokenReviews and %d keys for %d exchanges at once, want 1 and %d", n, len(keys), many, many)
	}
}
