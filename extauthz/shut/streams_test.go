package shut_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

// An upgrade would be checked once and then live for ever, so no key opens one; without one it is not even asked for.
func TestNoUpgradeIsTaken(t *testing.T) {
	s, i := usual(t, plan{})
	m := i.mint(t)
	rows := []row{}
	for _, path := range []string{"/v1/beliefs", "/mcp", "/healthz"} {
		for name, headers := range map[string][]string{
			"a WebSocket":                {"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="},
			"a WebSocket, in odd case":   {"connection: keep-alive, uPGRADE", "UPGRADE: WebSocket"},
			"something made up":          {"Connection: Upgrade", "Upgrade: evil"},
			"TLS inside the connection":  {"Connection: Upgrade", "Upgrade: TLS/1.2"},
			"several":                    {"Connection: Upgrade", "Upgrade: evil, websocket"},
			"an identity beside the key": {"Connection: Upgrade, " + s.names.Namespace, "Upgrade: websocket", s.names.Namespace + ": evil:1"},
		} {
			for who, key := range map[string][]string{"with a key": {m.line()}, "without one": nil} {
				rows = append(rows, row{name: path + " to " + name + " " + who, only1: true, send: request{path: path, headers: append(headers, key...)}, want: stopped(403)})
			}
		}
	}
	h2c := []string{m.line(), "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"}
	rows = append(rows, row{name: "HTTP/2 without asking first is no upgrade: it is passed over", only1: true, send: request{headers: h2c}, want: passes(m.identity)})
	s.run(t, rows)
}

// stream opens /mcp with a key, and returns the answer as soon as its head is there.
func (s *site) stream(t *testing.T, text string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.envoy.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+text)
	r.Header.Set("Accept", "text/event-stream")
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestAStreamIsCheckedWhenItBeginsAndEndsWithTheLifeOfAKey(t *testing.T) {
	const life = 2 * time.Second
	s, i := usual(t, plan{maxStream: life})
	m, other := i.mint(t), i.mint(t)
	next, gone := make(chan struct{}), make(chan struct{})
	s.backend.handle(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_, _ = io.WriteString(w, "data: event\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				close(gone)
				return
			}
		}
	})
	for name, text := range map[string]string{"no key": "x", "a revoked key": i.revoke(t, i.mint(t)).text} {
		before := s.backend.mark()
		if got := s.stream(t, text); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: answered %d", name, got.StatusCode)
		}
		if got := s.backend.since(before); got != "" {
			t.Errorf("%s: the backend saw %.300q", name, got)
		}
	}
	before, began := s.backend.mark(), time.Now()
	response := s.stream(t, m.text)
	s.checkArrival(t, s.backend.since(before), passes(m.identity), []string{m.text})
	events := bufio.NewReader(response.Body)
	event := func() {
		t.Helper()
		for _, want := range []string{"data: event\n", "\n"} {
			if line, err := events.ReadString('\n'); err != nil || line != want {
				t.Fatalf("%q, %v", line, err)
			}
		}
	}
	event()
	next <- struct{}{} // each event arrives before the next is made
	event()

	// A revocation shuts the door for what comes after it. What is open already ends with a key's life at the latest.
	i.revoke(t, m)
	s.replica.revoked.Revoke(m.id, i.Now())
	next <- struct{}{}
	event()
	if got := http1(t, s.address(), request{path: "/mcp", headers: []string{m.line()}}.withDefaults()); got.status != http.StatusUnauthorized {
		t.Errorf("a stream that begins after the revocation is answered %d", got.status)
	}
	if _, err := io.ReadAll(events); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v, want it cut", err)
	}
	if took := time.Since(began); took < life-100*time.Millisecond {
		t.Errorf("the stream was cut after %s", took)
	}
	<-gone // the backend learns of it
	s.backend.handle(nil)
	if got := s.stream(t, other.text); got.StatusCode != http.StatusOK {
		t.Errorf("another key is answered %d", got.StatusCode)
	}
}
