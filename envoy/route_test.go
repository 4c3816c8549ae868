package envoy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/envoy/envoytest"
	"sallyport/gateway"
	"sallyport/gateway/xds"
)

func TestProtectedPaths(t *testing.T) {
	r := newRig(t)
	t.Run("the door's yes carries the identity to the backend, and takes the key away", func(t *testing.T) {
		for _, path := range []string{"/v1/beliefs?q=x", "/v1/", "/mcp", "/v1/auth/other", "/v1/keysomething"} {
			before := r.authz.checks()
			if got := r.get(t, path); got.status != http.StatusOK {
				t.Fatalf("%s: status = %d, %s", path, got.status, got.body)
			}
			if r.authz.checks() != before+1 {
				t.Errorf("%s: the door was not asked", path)
			}
			request := r.backend.last(t)
			if request.URL.RequestURI() != path {
				t.Errorf("the backend saw %s, want %s", request.URL.RequestURI(), path)
			}
			id, err := gateway.DefaultHeaders().Parse(request.Header)
			if err != nil || id != identity {
				t.Errorf("%s: identity = %+v, %v; want %+v", path, id, err, identity)
			}
			if h := request.Header.Values("Authorization"); h != nil {
				t.Errorf("%s: Authorization = %q", path, h)
			}
		}
	})
	t.Run("other spellings of a path are the same path", func(t *testing.T) {
		for _, path := range []string{"//v1//beliefs", "/healthz/../v1/beliefs", "/./v1/beliefs", "/healthz/%2e%2e/v1/beliefs", "/%761/beliefs"} {
			before := r.authz.checks()
			if got := r.get(t, path); got.status != http.StatusOK {
				t.Fatalf("%s: status = %d, %s", path, got.status, got.body)
			}
			if r.authz.checks() != before+1 || r.backend.last(t).URL.Path != "/v1/beliefs" {
				t.Errorf("%s: the backend saw %s, and the door was asked %d times", path, r.backend.last(t).URL.Path, r.authz.checks()-before)
			}
		}
	})
	t.Run("the body goes through unread", func(t *testing.T) {
		if got := r.raw(t, "POST /v1/beliefs", "Authorization: Bearer key", "Content-Length: 0"); got.status != http.StatusOK {
			t.Errorf("status = %d", got.status)
		}
	})
}

func TestOpenPaths(t *testing.T) {
	r := newRig(t)
	if got := r.raw(t, "GET /healthz", "Authorization: Bearer key"); got.status != http.StatusOK {
		t.Fatalf("status = %d, %s", got.status, got.body)
	}
	if n := r.authz.checks(); n != 0 {
		t.Errorf("the door was asked %d times", n)
	}
	if h := r.backend.last(t).Header.Values("Authorization"); h != nil {
		t.Errorf("the backend saw Authorization = %q", h)
	}
}

func TestABackendWithoutPathsIsProtectedAltogether(t *testing.T) {
	r := newRig(t, func(g *xds.Gateway) { g.Backend.Paths = nil; g.Exchange = nil })
	for i, path := range []string{"/", "/healthz", "/v1/keys", "/any/thing"} {
		if got := r.get(t, path); got.status != http.StatusOK {
			t.Errorf("%s: status = %d, %s", path, got.status, got.body)
		}
		if n := r.authz.checks(); n != i+1 {
			t.Errorf("%s: the door was not asked", path)
		}
	}
}

func TestExchangePaths(t *testing.T) {
	r := newRig(t, func(g *xds.Gateway) {
		g.Exchange.TokenRate = xds.Rate{Requests: 2, Every: time.Hour}
		g.Exchange.AdminRate = xds.Rate{Requests: 5, Every: time.Hour}
	})
	r.authz.respond(deny(unauthenticated)) // it must not matter
	for _, request := range []string{"POST /v1/auth/kubernetes", "GET /v1/keys", "POST /v1/keys/key-1/revoke", "GET /.well-known/jwks.json"} {
		if got := r.raw(t, request, "Authorization: Bearer admin", "Content-Length: 0"); got.status != http.StatusOK {
			t.Fatalf("%s: status = %d, %s", request, got.status, got.body)
		}
		if got := r.exchange.last(t).Header.Get("Authorization"); got != "Bearer admin" {
			t.Errorf("%s: the exchange saw Authorization = %q", request, got)
		}
	}
	if n := r.authz.checks(); n != 0 {
		t.Errorf("the inner door was asked %d times", n)
	}
	if n := r.backend.count(); n != 0 {
		t.Errorf("the backend saw %d requests", n)
	}
	t.Run("a flood of tokens is refused, and told when to come back", func(t *testing.T) {
		if got := r.raw(t, "POST /v1/auth/kubernetes", "Content-Length: 0"); got.status != http.StatusOK {
			t.Fatalf("the second of two: status = %d", got.status)
		}
		before := r.exchange.count()
		got := r.raw(t, "POST /v1/auth/kubernetes", "Content-Length: 0")
		wantError(t, got, http.StatusTooManyRequests, gateway.CodeRateLimited)
		if retry := got.header.Values("Retry-After"); len(retry) != 1 || len(retry[0]) < 4 { // an hour in seconds
			t.Errorf("Retry-After = %q, want the time to the next token", retry)
		}
		if r.exchange.count() != before {
			t.Error("a refused request reached the exchange")
		}
	})
	t.Run("which leaves the other buckets alone", func(t *testing.T) {
		if got := r.raw(t, "GET /v1/keys"); got.status != http.StatusOK {
			t.Errorf("status = %d, %s", got.status, got.body)
		}
		r.authz.respond(allow())
		for range 10 {
			if got := r.get(t, "/v1/x"); got.status != http.StatusOK {
				t.Errorf("status = %d, %s", got.status, got.body)
			}
		}
	})
}

func TestTrustedHops(t *testing.T) {
	for _, tt := range []struct {
		hops uint32
		peer string
	}{
		{0, "127.0.0.1"}, // the edge: whoever connects
		{1, "10.0.0.2"},  // what the one proxy in front wrote
		{2, "10.0.0.1"},
	} {
		r := newRig(t, func(g *xds.Gateway) { g.TrustedHops = tt.hops })
		r.raw(t, "GET /v1/x", "Authorization: Bearer key", "X-Forwarded-For: 10.0.0.0, 10.0.0.1, 10.0.0.2")
		envoytest.Eventually(t, "the access log names "+tt.peer, func() bool {
			return strings.Contains(r.AccessLog(), `"peer":"`+tt.peer+`"`)
		})
	}
}
