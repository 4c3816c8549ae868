package httpcheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/extauthz/httpcheck"
	"sallyport/gateway"
)

// decide is a Decider that keeps what it was asked.
type decide struct {
	asked extauthz.Request
	say   extauthz.Decision
}

func (d *decide) Decide(_ context.Context, r extauthz.Request) extauthz.Decision {
	d.asked = r
	return d.say
}

var allowed = extauthz.Decision{
	Reason:   extauthz.ReasonAllowed,
	Identity: gateway.Identity{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", KeyID: "00ff"},
}

func ask(t *testing.T, d *decide, method, target string, header http.Header) (w *httptest.ResponseRecorder, logged string) {
	t.Helper()
	var text bytes.Buffer
	log, err := extauthz.NewDecisionLog(slog.New(slog.NewJSONHandler(&text, nil)), extauthz.LogRates{Denials: 1}, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, target, nil)
	r.Header = header
	w = httptest.NewRecorder()
	httpcheck.New(d, gateway.DefaultHeaders(), log).ServeHTTP(w, r)
	return w, text.String()
}

func TestAnAllowIsTheTrustedHeaders(t *testing.T) {
	d := &decide{say: allowed}
	w, log := ask(t, d, http.MethodGet, "/check", http.Header{
		"Authorization": {"Bearer a", "Bearer b"}, "X-Sallyport-Color": {"red"}, "X-Sallyport-Tenant": {"agents"}, "Cookie": {"x"},
	})
	if w.Code != http.StatusOK || w.Header().Get("X-Sallyport-Namespace") != "agents:run-1" || w.Header().Get("X-Sallyport-Key-Id") != "00ff" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	remove := strings.Split(w.Header().Get("X-Envoy-Auth-Headers-To-Remove"), ",")
	slices.Sort(remove)
	if !slices.Equal(remove, []string{"X-Sallyport-Color", "authorization"}) { // the tenant is set: it must not go
		t.Errorf("to remove: %v", remove)
	}
	if !slices.EqualFunc(d.asked.Authorization, []string{"Bearer a", "Bearer b"}, func(a []byte, b string) bool { return string(a) == b }) || len(d.asked.Claimed) != 2 {
		t.Errorf("asked %+v", d.asked)
	}
	if log != "" {
		t.Errorf("an allow was logged: %s", log)
	}
}

func TestADenialIsWhatTheCallerShouldSee(t *testing.T) {
	d := &decide{say: extauthz.Decision{Reason: "expired", Denial: &gateway.Error{
		Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "try again", RetryAfter: time.Second,
	}}}
	for name, c := range map[string]struct {
		target string
		header http.Header
	}{
		"Envoy":   {"/check/v1/recall?secret=1", http.Header{}},
		"Traefik": {"/check", http.Header{"X-Forwarded-Method": {"POST"}, "X-Forwarded-Uri": {"/v1/recall?secret=1"}}},
		"nginx":   {"/check", http.Header{"X-Original-Method": {"POST"}, "X-Original-Uri": {"/v1/recall?secret=1"}}},
	} {
		c.header.Set("Authorization", "Bearer topsecret")
		w, log := ask(t, d, http.MethodPost, c.target, c.header)
		var body struct {
			Error struct{ Code string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 503 || body.Error.Code != "unavailable" || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
		if w.Header().Get("X-Sallyport-Namespace") != "" {
			t.Errorf("%s: a denial names an identity", name)
		}
		if !strings.Contains(log, `"path":"/v1/recall"`) || !strings.Contains(log, `"method":"POST"`) || strings.Contains(log, "secret") {
			t.Errorf("%s: log = %s", name, log)
		}
	}
}

func TestOtherPathsDecideNothing(t *testing.T) {
	for target, status := range map[string]int{"/": 404, "/checkers": 404, "/v1/recall": 404, "/healthz": 200, "/check/": 200} {
		if w, _ := ask(t, &decide{say: allowed}, http.MethodGet, target, http.Header{}); w.Code != status {
			t.Errorf("%s: %d, want %d", target, w.Code, status)
		}
	}
}
