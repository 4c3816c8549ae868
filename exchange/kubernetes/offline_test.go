package kubernetes_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sallyport/exchange/kubernetes/kubetest"
)

func offline() setup {
	s := watched()
	s.offline = true
	return s
}

func TestOfflineTheClustersKeysVerifyTokens(t *testing.T) {
	r := newRig(t, offline())
	pod := r.Cold("run-1").Pod
	good := r.Token(pod, audience)
	r.gets(r.exchange(good), "run-1")
	for what, c := range map[string]struct{ token, says string }{
		"wrong audience":   {r.Token(pod, "vault"), `project one with audience "recall"`},
		"expired":          {r.cluster.Resign(t, good, expire(time.Hour)), "has expired"},
		"another issuer":   {r.cluster.Resign(t, good, func(c jwt.MapClaims) { c["iss"] = "https://example.com" }), "another issuer"},
		"another key":      {r.cluster.Forge(t, good, func(jwt.MapClaims) {}), "not signed by the issuer"},
		"another pod's":    {r.cluster.Resign(t, good, rebind), "another one has its name"},
		"garbage":          {"garbage", "not a service-account token"},
		"bound to no pod":  {r.TokenFor("default", nil, audience), "projected serviceAccountToken"},
		"bound, but later": {r.cluster.Resign(t, good, func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() }), "not valid yet"},
	} {
		t.Run(what, func(t *testing.T) {
			r.in(t).refused(r.exchange(c.token), http.StatusUnauthorized, "unauthenticated", c.says)
		})
	}
	r.DeletePod("run-1", 0)
	r.refused(r.exchange(good), http.StatusUnauthorized, "unauthenticated", "pod does not exist")
}

func TestOfflineAnExchangeIsNoCallAtAll(t *testing.T) {
	r := newRig(t, offline())
	const exchanges = 10
	var tokens []string
	for i := range exchanges {
		tokens = append(tokens, r.Token(r.Cold(fmt.Sprintf("run-%d", i)).Pod, audience))
	}
	r.gets(r.exchange(tokens[0]), "run-0") // fetches the keys
	before := len(r.cluster.Calls(t, r.userAgent))
	for i, token := range tokens {
		r.gets(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token)), fmt.Sprintf("run-%d", i))
	}
	forged := r.cluster.Forge(t, tokens[0], func(jwt.MapClaims) {})
	for range exchanges {
		r.refused(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(forged)), http.StatusUnauthorized, "unauthenticated")
	}
	for _, call := range r.cluster.Calls(t, r.userAgent)[before:] {
		t.Errorf("%s %s", call.Verb, call.URI)
	}
}

func TestOfflineWithoutKeysIsAnOutage(t *testing.T) {
	cluster := kubetest.Shared(t)
	proxy := cluster.Proxy(t)
	s := offline()
	s.config = proxy.Config(cluster.ExchangeConfig(t, userAgent(t)))
	r := newRig(t, s)
	token := r.Token(r.Cold("run-1").Pod, audience)
	proxy.Fault(func(request *http.Request) http.HandlerFunc {
		if strings.HasPrefix(request.URL.Path, "/openid/") {
			return kubetest.Hang
		}
		return nil
	})
	began := time.Now()
	r.refused(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token)), http.StatusServiceUnavailable, "unavailable", "try again")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the answer took %s", took)
	}
	proxy.Fault(nil)
	r.gets(r.exchange(token), "run-1")
}
