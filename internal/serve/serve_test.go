package serve_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/serve"
)

func TestListenOnAUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "sp-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in /tmp
	path := filepath.Join(dir, "x.sock")

	first, err := serve.Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	if _, err := serve.Listen(t.Context(), "unix:"+path); err == nil || !strings.Contains(err.Error(), "another process serves") {
		t.Errorf("a living socket was taken: %v", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as a killed process leaves it
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := serve.Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatalf("a stale socket is in the way: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := serve.Listen(t.Context(), "unix:"+path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file was replaced: %v", err)
	}
}

func TestListenSaysWhatIsWrongWithAnAddress(t *testing.T) {
	for address, says := range map[string]string{
		"":                                  "unix:PATH or HOST:PORT",
		"8080":                              "unix:PATH or HOST:PORT",
		"unix:":                             "unix:PATH",
		"unix:/" + strings.Repeat("a", 110): "shorter directory",
	} {
		if _, err := serve.Listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Listen(%q) = %v", address, err)
		}
	}
}

func TestHTTPFinishesWhatItHasBegun(t *testing.T) {
	l, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began, goOn := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-goOn
		_, _ = io.WriteString(w, "whole")
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve.HTTP(ctx, l, handler, slog.New(slog.DiscardHandler)) }()
	answered := make(chan string, 1)
	go func() {
		client := &http.Client{Timeout: 10 * time.Second}
		r, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer r.Body.Close() //nolint:errcheck // a test
		text, _ := io.ReadAll(r.Body)
		answered <- string(text)
	}()
	<-began
	stop()
	close(goOn)
	if got := <-answered; got != "whole" {
		t.Errorf("the answer was %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("HTTP = %v", err)
	}
}
