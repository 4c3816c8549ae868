package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestABodyThatIsNotWhatTheCallTakes(t *testing.T) {
	r := newRig(t, defaults())
	for what, c := range map[string]struct {
		body   string
		status int
	}{
		"empty":          {"", http.StatusBadRequest},
		"no JSON":        {"token=x", http.StatusBadRequest},
		"wrong type":     {`{"token":7}`, http.StatusBadRequest},
		"array":          {`["x"]`, http.StatusBadRequest},
		"null":           {`null`, http.StatusBadRequest},
		"truncated":      {`{"token":"x`, http.StatusBadRequest},
		"unknown member": {`{"token":"x","agent":"run-2"}`, http.StatusBadRequest},
		"two objects":    {`{"token":"x"}{}`, http.StatusBadRequest},
		"empty token":    {`{"token":""}`, http.StatusBadRequest},
		"no token":       {`{}`, http.StatusBadRequest},
		"over 16 KiB":    {tokenBody(strings.Repeat("x", 16<<10)), http.StatusRequestEntityTooLarge},
	} {
		t.Run(what, func(t *testing.T) {
			r.refused(r.send(http.MethodPost, "/v1/auth/kubernetes", c.body), c.status, "invalid_argument")
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		a := r.refused(r.send(method, "/v1/auth/kubernetes", ""), http.StatusMethodNotAllowed, "method_not_allowed")
		if a.header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: Allow is %q", method, a.header.Get("Allow"))
		}
	}
	if n := len(r.cluster.Calls(t, r.userAgent)); n != 0 {
		t.Errorf("bad requests cost the API server %d calls", n)
	}
}

func TestRenewal(t *testing.T) {
	r := newRig(t, defaults())
	token := r.Token(r.Cold("run-1").Pod, audience)
	first := r.gets(r.exchange(token), "run-1")
	renew := func(body string) answer {
		return r.send(http.MethodPost, "/v1/keys/renew", body, "Authorization", "Bearer "+first.body.Key)
	}
	r.refused(renew(""), http.StatusConflict, "renew_with_token")
	r.refused(renew(tokenBody(r.Token(r.Cold("run-2").Pod, audience))), http.StatusForbidden, "namespace_mismatch")
	second := renew(tokenBody(token))
	if second.status != http.StatusOK || second.body.Key == first.body.Key || second.body.Namespace != first.body.Namespace {
		t.Fatalf("got %d %s", second.status, second.text)
	}
	if again := renew(tokenBody(token)); again.status != http.StatusOK {
		t.Errorf("the old key does not live on: %d %s", again.status, again.text)
	}
}

// What an exchange costs the API server without watches.
func TestAnExchangeIsFourCallsWithoutWatches(t *testing.T) {
	r := newRig(t, defaults())
	token := r.Token(r.Cold("run-1").Pod, audience)
	r.gets(r.exchange(token), "run-1") // finds the versions
	before := len(r.cluster.Calls(t, r.userAgent))
	const exchanges = 5
	for range exchanges {
		r.gets(r.exchange(token), "run-1")
	}
	if n := len(r.cluster.Calls(t, r.userAgent)) - before; n != 4*exchanges {
		t.Errorf("%d calls for %d exchanges, want 4 each", n, exchanges)
	}
}
