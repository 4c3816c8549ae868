package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"sallyport/exchange/devcluster"
	"sallyport/exchange/sandbox"
)

func TestAClaimedPodGetsAKeyForItsClaim(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	a := r.mint(r.token(devcluster.PodSpec{Name: "run-1-a", Claim: "run-1"}))
	for name, want := range map[string]any{
		"admin": false, "revoked": false, "renewable": true, "ttl": "15m0s",
		"namespace": "agents:run-1", "tenant": "agents", "agent": "run-1", "session": "run-1-a",
	} {
		if a.body[name] != want {
			t.Errorf("%s = %v, want %v", name, a.body[name], want)
		}
	}
	for _, name := range []string{"id", "note", "created_at", "expires_at", "key"} {
		if a.text(name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
	claims, err := r.verifier.Verify(t.Context(), a.text("key"))
	if err != nil || claims.ID != a.text("id") || claims.Namespace != "agents:run-1" || claims.PodUID == "" || claims.ServiceAccount != "default" {
		t.Errorf("the key says %+v, %v", claims, err)
	}
	if expires, err := time.Parse(time.RFC3339, a.text("expires_at")); err != nil || !expires.Equal(claims.Expires) {
		t.Errorf("expires_at = %v, %v; the key says %v", expires, err, claims.Expires)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Error("an answer with a key may be stored by caches")
	}
	record, err := r.store.Key(t.Context(), a.text("id"))
	if err != nil || record.SecretHash != nil || record.PodUID != claims.PodUID {
		t.Errorf("stored: %+v, %v", record, err)
	}
}

func TestWhoGetsAKey(t *testing.T) {
	for name, c := range map[string]struct {
		opts   sandbox.Options
		token  func(t *testing.T, r *rig) string
		status int
		says   string // in the message, or the agent for 201
	}{
		"a pod that waits in a warm pool": {
			token:  func(_ *testing.T, r *rig) string { return r.token(devcluster.PodSpec{Name: "w", WarmPool: "p"}) },
			status: 401, says: "still in warm pool",
		},
		"the same pod and token after a claim took it": {
			token: func(t *testing.T, r *rig) string {
				token := r.token(devcluster.PodSpec{Name: "w", WarmPool: "p"})
				check(t, r.cluster.TakeClaim(t.Context(), "agents", "c", "w"))
				return token
			},
			status: 201, says: "c",
		},
		"a plain pod": {
			token:  func(_ *testing.T, r *rig) string { return r.token(devcluster.PodSpec{Name: "plain"}) },
			status: 201, says: "plain",
		},
		"a plain pod where claims are required": {
			opts:   sandbox.Options{RequireClaim: true},
			token:  func(_ *testing.T, r *rig) string { return r.token(devcluster.PodSpec{Name: "plain"}) },
			status: 401, says: "no SandboxClaim holds the pod",
		},
		"a plain pod with the name of somebody's claim": {
			token: func(_ *testing.T, r *rig) string {
				r.token(devcluster.PodSpec{Name: "run-1-a", Claim: "run-1"})
				return r.token(devcluster.PodSpec{Name: "run-1"})
			},
			status: 401, says: "name of a SandboxClaim",
		},
		"a pod whose claim was deleted": {
			token: func(t *testing.T, r *rig) string {
				token := r.token(devcluster.PodSpec{Name: "a", Claim: "c"})
				check(t, r.cluster.DeleteClaim(t.Context(), "agents", "c"))
				return token
			},
			status: 401, says: "SandboxClaim",
		},
		"a leftover pod, its claim made again under the name": {
			token: func(t *testing.T, r *rig) string {
				token := r.token(devcluster.PodSpec{Name: "a", Claim: "c"})
				check(t, r.cluster.DeleteClaim(t.Context(), "agents", "c"))
				r.token(devcluster.PodSpec{Name: "b", Claim: "c"})
				return token
			},
			status: 401, says: "leftover",
		},
		"a pod that was deleted": {
			token: func(t *testing.T, r *rig) string {
				token := r.token(devcluster.PodSpec{Name: "a", Claim: "c"})
				check(t, r.cluster.DeletePod(t.Context(), "agents", "a"))
				return token
			},
			status: 401, says: "does not exist any more",
		},
		"the old token of a pod that was made again": {
			token: func(t *testing.T, r *rig) string {
				token := r.token(devcluster.PodSpec{Name: "a", Claim: "c"})
				check(t, r.cluster.DeletePod(t.Context(), "agents", "a"))
				r.token(devcluster.PodSpec{Name: "a", Claim: "c"})
				return token
			},
			status: 401, says: "another one has its name",
		},
		"a token for another audience": {
			token: func(_ *testing.T, r *rig) string {
				return r.tokenFor(devcluster.PodSpec{Name: "a"}, "kubernetes", time.Hour)
			},
			status: 401, says: `"recall"`,
		},
		"an expired token": {
			token: func(_ *testing.T, r *rig) string {
				return r.tokenFor(devcluster.PodSpec{Name: "a"}, audience, -time.Minute)
			},
			status: 401, says: "expired",
		},
		"a token that somebody else signed": {
			token: func(t *testing.T, r *rig) string {
				return newRig(t, sandbox.Options{}).token(devcluster.PodSpec{Name: "a"})
			},
			status: 401, says: "not signed by the issuer",
		},
		"garbage": {
			token:  func(*testing.T, *rig) string { return "garbage" },
			status: 401, says: "not a service-account token",
		},
		"something far too long": {
			token:  func(*testing.T, *rig) string { return strings.Repeat(".", 10<<10) },
			status: 401, says: "longer than any",
		},
		"a key in the place of a token": {
			token: func(_ *testing.T, r *rig) string {
				return r.mint(r.token(devcluster.PodSpec{Name: "a"})).text("key")
			},
			status: 401, says: "not signed by the issuer",
		},
		"names that are too long together": {
			token: func(_ *testing.T, r *rig) string {
				return r.token(devcluster.PodSpec{Name: "a", Claim: strings.Repeat("c", 122)})
			},
			status: 422, says: strings.Repeat("c", 122),
		},
		"names that just fit": {
			token: func(_ *testing.T, r *rig) string {
				return r.token(devcluster.PodSpec{Name: "a", Claim: strings.Repeat("c", 121)})
			},
			status: 201, says: strings.Repeat("c", 121),
		},
		"nothing": {
			token:  func(*testing.T, *rig) string { return "" },
			status: 400, says: "token is empty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.opts)
			token := c.token(t, r)
			r.log.Reset()
			a := r.exchange(token)
			if a.status != c.status {
				t.Fatalf("%d %v, want %d", a.status, a.body, c.status)
			}
			if a.status == http.StatusCreated {
				if a.text("agent") != c.says {
					t.Errorf("agent = %s, want %s", a.text("agent"), c.says)
				}
				return
			}
			if !strings.Contains(a.message(), c.says) {
				t.Errorf("%q does not say %q", a.message(), c.says)
			}
			if a.status == 401 && (a.code() != "unauthenticated" || a.header.Get("WWW-Authenticate") == "") {
				t.Errorf("code = %s, headers = %v", a.code(), a.header)
			}
			log := r.log.String()
			if !strings.Contains(log, `"reason":"`) || strings.Contains(log, `"reason":""`) {
				t.Errorf("the log gives no reason: %s", log)
			}
			if len(token) > 20 && (strings.Contains(log, token[:20]) || strings.Contains(a.message(), token[:20])) {
				t.Errorf("the token is quoted: %s %s", log, a.message())
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAClusterThatCannotBeAskedIsNobodysFault(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	token := r.token(devcluster.PodSpec{Name: "a"})
	r.broken.Store(true)
	a := r.exchange(token)
	if a.status != 503 || a.code() != "unavailable" || a.header.Get("Retry-After") == "" || strings.Contains(a.message(), "10.0.0.1") {
		t.Errorf("%d %v", a.status, a.body)
	}
	r.broken.Store(false)
	r.mint(token) // nothing of the outage was kept
}

func TestAKeyStoreThatCannotBeAsked(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	token := r.token(devcluster.PodSpec{Name: "a"})
	check(t, r.store.Close())
	for name, a := range map[string]answer{
		"exchange": r.exchange(token),
		"list":     r.send(http.MethodGet, "/v1/keys", r.admin, ""),
		"key set":  r.send(http.MethodGet, "/.well-known/jwks.json", "", ""),
	} {
		if a.status != 503 || a.code() != "unavailable" || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", name, a.status, a.body)
		}
	}
	if a := r.send(http.MethodGet, "/healthz", "", ""); a.status != 503 {
		t.Errorf("healthz = %d", a.status)
	}
}

func TestABodyIsOneObjectWithKnownMembers(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"empty":             {"", 400},
		"not JSON":          {"token", 400},
		"cut short":         {`{"token":"a`, 400},
		"an array":          {`["a"]`, 400},
		"null":              {`null`, 400},
		"a number as token": {`{"token":1}`, 400},
		"unknown members":   {`{"token":"a","namespace":"b"}`, 400},
		"two objects":       {`{"token":"a"}{"token":"b"}`, 400},
		"16 KiB":            {`{"token":"` + strings.Repeat("a", 16<<10-12) + `"}`, 401},
		"a byte more":       {`{"token":"` + strings.Repeat("a", 16<<10-11) + `"}`, 413},
	} {
		a := r.send(http.MethodPost, "/v1/auth/kubernetes", "", c.body)
		if a.status != c.status || (c.status != 401 && a.code() != "invalid_argument") {
			t.Errorf("%s: %d %v, want %d", name, a.status, a.body, c.status)
		}
		if strings.Contains(a.message(), "json:") || strings.Contains(a.message(), "struct") {
			t.Errorf("%s: %q speaks of Go", name, a.message())
		}
	}
}

func TestAnswersAreCountedByTheirReason(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	r.mint(r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"}))
	r.exchange(r.token(devcluster.PodSpec{Name: "w", WarmPool: "p"}))
	r.exchange("garbage")
	r.send("GET", "/v1/invented/path/"+r.admin, "", "")
	want := `
# HELP sallyport_exchange_answers_total Answers, by route, status and, for refusals, the reason in one word.
# TYPE sallyport_exchange_answers_total counter
sallyport_exchange_answers_total{reason="",route="/v1/auth/kubernetes",status="201"} 1
sallyport_exchange_answers_total{reason="in_warm_pool",route="/v1/auth/kubernetes",status="401"} 1
sallyport_exchange_answers_total{reason="malformed",route="/v1/auth/kubernetes",status="401"} 1
sallyport_exchange_answers_total{reason="no_route",route="other",status="404"} 1
`
	if err := testutil.CollectAndCompare(r.handler.Collector(), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestOtherMethodsAndPaths(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	for path, allow := range map[string]string{
		"/v1/auth/kubernetes": "POST", "/v1/keys/renew": "POST", "/v1/keys": "GET, POST", "/v1/keys/abc": "DELETE", "/v1/whoami": "GET", "/.well-known/jwks.json": "GET",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if slices.Contains(strings.Split(allow, ", "), method) {
				continue
			}
			if a := r.send(method, path, "", ""); a.status != 405 || a.code() != "method_not_allowed" || a.header.Get("Allow") != allow {
				t.Errorf("%s %s: %d %v, Allow %q", method, path, a.status, a.body, a.header.Get("Allow"))
			}
		}
	}
	if a := r.send("POST", "/v1/auth/other", "", ""); a.status != 404 || a.code() != "not_found" {
		t.Errorf("%d %v", a.status, a.body)
	}
}
