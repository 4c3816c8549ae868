// Package envoytest runs a real Envoy for a test, from a Gateway value. Tests alone import it.
package envoytest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sallyport/envoy"
	"sallyport/gateway/xds"
)

// Envoy is one that runs until its test ends.
type Envoy struct {
	URL        string // http://127.0.0.1:PORT
	Supervisor *envoy.Supervisor
	Admin      xds.Endpoint
	access     *Buffer
	stop       func() error
}

// AccessLog returns what Envoy has written to its access log so far. Envoy writes it shortly after the answer.
func (e *Envoy) AccessLog() string { return e.access.String() }

// Stop ends Envoy before its test ends, and returns what Run returned.
func (e *Envoy) Stop() error { return e.stop() }

// Start runs Envoy with g, on a loopback port that Envoy chooses, and waits until it is ready. Listen and Admin are filled
// in if they are empty. Without a binary the test fails, and says how to get one.
func Start(t testing.TB, g xds.Gateway, change ...func(*envoy.Config)) *Envoy {
	t.Helper()
	if g.Listen == "" {
		g.Listen = "127.0.0.1:0"
	}
	if g.Admin == "" {
		g.Admin = xds.Endpoint("unix:" + filepath.Join(SocketDir(t), "admin.sock"))
	}
	access := &Buffer{}
	config := envoy.Config{
		Gateway:     g,
		Concurrency: 1,
		Logger:      Logger(t),
		AccessLog:   access,
	}
	for _, f := range change {
		f(&config)
	}
	supervisor, err := envoy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	e := Run(t, supervisor)
	e.Admin, e.access = g.Admin, access
	return e
}

// Run runs a supervisor until the test ends, and waits until it is ready.
func Run(t testing.TB, supervisor *envoy.Supervisor) *Envoy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- supervisor.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop Envoy: %v", err)
		}
	})
	select {
	case <-supervisor.Ready():
	case err := <-done:
		done <- nil
		t.Fatalf("Envoy did not start: %v", err)
	}
	return &Envoy{URL: "http://" + supervisor.Addr().String(), Supervisor: supervisor, access: &Buffer{}, stop: stop}
}

// SocketDir makes a directory for unix sockets. Its name is short, unlike that of t.TempDir: a socket's path has at most
// 107 bytes.
func SocketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Logger shows warnings and errors with the test's own output.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Eventually waits until a condition holds, and fails the test if it does not within ten seconds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	const patience, pause = 10 * time.Second, 10 * time.Millisecond
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// Buffer is a bytes.Buffer for several goroutines.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
