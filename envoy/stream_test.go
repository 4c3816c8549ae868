package envoy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// open sends a request and returns its answer as soon as the head of it is there.
func (r *rig) open(t *testing.T, method, path string, body io.Reader) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, r.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer key")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestEventsGoThroughOneByOne(t *testing.T) {
	r := newRig(t)
	next := make(chan struct{})
	r.backend.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: event\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next // the next event is not sent before the client has read this one
		}
	})
	response := r.open(t, http.MethodGet, "/mcp", nil)
	events := bufio.NewReader(response.Body)
	for i := range 3 {
		line, err := events.ReadString('\n')
		if err != nil || line != "data: event\n" {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		if _, err := events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
}

func TestARequestBodyIsNotHeldBack(t *testing.T) {
	r := newRig(t)
	got := make(chan string)
	r.backend.stream = func(w http.ResponseWriter, request *http.Request) {
		buffer := make([]byte, 100)
		n, _ := request.Body.Read(buffer) // the rest is not sent before this is answered
		got <- string(buffer[:n])
		_, _ = io.Copy(io.Discard, request.Body)
	}
	body, send := io.Pipe()
	go func() {
		_, _ = io.WriteString(send, "first")
		if first := <-got; first != "first" {
			t.Errorf("the backend read %q", first)
		}
		_ = send.Close()
	}()
	if response := r.open(t, http.MethodPost, "/mcp", body); response.StatusCode != http.StatusOK {
		t.Errorf("status = %d", response.StatusCode)
	}
}

func TestAStreamEndsWithTheLifeOfAKey(t *testing.T) {
	r := newRig(t, func(g *xds.Gateway) { g.MaxStream = time.Second })
	gone := make(chan struct{}, 2)
	t.Run("after it has begun, it is cut", func(t *testing.T) {
		r.backend.handle(func(w http.ResponseWriter, request *http.Request) {
			_, _ = io.WriteString(w, "data: event\n\n")
			_ = http.NewResponseController(w).Flush()
			<-request.Context().Done()
			gone <- struct{}{}
		})
		response := r.open(t, http.MethodGet, "/mcp", nil)
		if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error = %v, want %v", err, io.ErrUnexpectedEOF)
		}
		<-gone // the backend learns of it
	})
	t.Run("before it has begun, it is told why", func(t *testing.T) {
		r.backend.handle(func(_ http.ResponseWriter, request *http.Request) {
			<-request.Context().Done()
			gone <- struct{}{}
		})
		response := r.open(t, http.MethodGet, "/mcp", nil)
		got := read(t, response)
		if got.status != http.StatusRequestTimeout && got.status != http.StatusGatewayTimeout {
			t.Errorf("status = %d", got.status)
		}
		wantError(t, got, got.status, gateway.CodeUnavailable)
		<-gone
	})
}

func TestALargeBodyGoesThrough(t *testing.T) {
	r := newRig(t)
	const size = 4 << 20
	response := r.open(t, http.MethodPost, "/v1/x", strings.NewReader(strings.Repeat("x", size)))
	if response.StatusCode != http.StatusOK {
		t.Errorf("status = %d", response.StatusCode)
	}
}
