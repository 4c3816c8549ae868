package gateway_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
)

func TestMiddleware(t *testing.T) {
	var seen http.Header
	var id gateway.Identity
	h := gateway.Middleware(gateway.DefaultHeaders(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = r.Header
		id, _ = gateway.FromContext(r.Context())
	}))
	serve := func(headers map[string]string) *httptest.ResponseRecorder {
		seen = nil
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for name, value := range headers {
			r.Header[name] = []string{value} // as it came, not canonical
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}

	t.Run("gives the identity in the context and takes the headers away", func(t *testing.T) {
		serve(map[string]string{
			"X-Sallyport-Namespace": "agents:run-1", "X-Sallyport-Agent": "run-1", "X_Sallyport_Agent": "run-2", "Authorization": "Bearer x", "Accept": "a/b",
		})
		if id.Namespace != "agents:run-1" || id.Agent != "run-1" {
			t.Errorf("identity = %+v", id)
		}
		if len(seen) != 1 || seen.Get("Accept") != "a/b" {
			t.Errorf("the handler saw %v", seen)
		}
	})
	t.Run("answers 401 where the gateway said nothing", func(t *testing.T) {
		w := serve(map[string]string{"Authorization": "Bearer x"})
		if w.Code != http.StatusUnauthorized || seen != nil || w.Header().Get("WWW-Authenticate") != gateway.Challenge {
			t.Errorf("status %d, handler saw %v", w.Code, seen)
		}
	})
	t.Run("a context that did not pass has no identity", func(t *testing.T) {
		if _, ok := gateway.FromContext(t.Context()); ok {
			t.Error("it has one")
		}
	})
}

func TestWriteErrorTellsTheCallerWhatToDoAndNeverTheCause(t *testing.T) {
	w := httptest.NewRecorder()
	gateway.WriteError(w, &gateway.Error{
		Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "try <again>",
		RetryAfter: 1500 * time.Millisecond, Cause: errors.New("password=hunter2"),
	})
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	if w.Code != 503 || body.Error.Code != "unavailable" || body.Error.Message != "try <again>" || w.Header().Get("Retry-After") != "2" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if strings.Contains(w.Body.String(), "hunter2") || strings.Contains(w.Body.String(), `\u003c`) {
		t.Errorf("body = %s", w.Body)
	}

	w = httptest.NewRecorder()
	gateway.WriteError(w, errors.New("password=hunter2"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
