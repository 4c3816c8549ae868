package keystore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/keystore"
	"sallyport/internal/pgtest"
)

// cutListeners ends the connections that listen, and no other.
const cutListeners = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"

func TestAWatchWhoseConnectionIsLostEndsAndTheNextOneResyncs(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	s := openAt(t, address)
	h := follow(t, s)
	began := time.Now()
	pgtest.Execute(t, address, cutListeners)
	if err := await(t, "the watch ends", h.ended); err == nil {
		t.Error("the watch ended without an error")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
	ok(t, s.AddKey(ctx, static("x")))
	again := follow(t, s) // which waits for the resync
	ok(t, s.Revoke(ctx, "x", "", time.Now()))
	if got := await(t, "the new watch hears", again.ids); got != "x" {
		t.Errorf("heard %q", got)
	}
}

func TestAWatchWhoseConnectionFallsSilentEnds(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	h := follow(t, openAt(t, address))
	var pid int
	ok(t, database(t, address).QueryRow("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'").Scan(&pid))
	began := time.Now()
	ok(t, syscall.Kill(pid, syscall.SIGSTOP)) // the server's process of that connection: nothing is closed, nothing answers
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	if err := await(t, "the watch ends", h.ended); err == nil {
		t.Error("the watch ended without an error")
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAClosedStoreEndsItsWatches(t *testing.T) {
	s := openAt(t, pgtest.Start(t).Database(t))
	h := follow(t, s)
	ok(t, s.Close())
	if err := await(t, "the watch ends", h.ended); err == nil {
		t.Error("the watch ended without an error")
	}
}

func TestAnOutageIsNoUnknownKeyAndEndsAtOnce(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Database(t))
	ok(t, s.AddKey(ctx, static("x")))
	var wg sync.WaitGroup
	for range 8 { // so that several connections are open
		wg.Go(func() {
			if _, err := s.Introspect(ctx, "x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h := follow(t, s)
	server.Stop(t)
	if err := await(t, "the watch ends", h.ended); err == nil {
		t.Error("the watch ended without an error")
	}
	for name, call := range map[string]func() error{
		"Key":        func() error { _, err := s.Key(ctx, "x"); return err },
		"Introspect": func() error { _, err := s.Introspect(ctx, "x"); return err },
		"Revoke":     func() error { return s.Revoke(ctx, "x", "", time.Now()) },
		"Ping":       func() error { return s.Ping(ctx) },
	} {
		began := time.Now()
		if err := call(); err == nil || errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("%s = %v", name, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	server.Resume(t)
	_, err := s.Introspect(ctx, "x")
	ok(t, err)
	ok(t, s.Revoke(ctx, "x", "", time.Now()))
}

// Connections that a restart cut under a caller's feet fail nobody, though the pool is full of them.
func TestARestartFailsNoReaderAfterIt(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Database(t))
	ok(t, s.AddKey(ctx, static("x")))
	ask := func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := s.Introspect(ctx, "x"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	ask()
	server.Kill(t)
	ask()
}

func TestAServerThatDoesNotAnswerHoldsNobody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer silent.Close() //nolint:errcheck // a test
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	began := time.Now()
	_, err = keystore.Open(ctx, "postgres://me:hunter2@"+silent.Addr().String()+"/keys?sslmode=disable", time.Now)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open = %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Open took %s", took)
	}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	for _, address := range []string{
		"postgres://me:hunter2@127.0.0.1:1/keys",
		"postgres://me:hunter2@h:port/keys",
		"postgres://me@127.0.0.1:1/keys?password=hunter2",
		"postgres://me:hun%zzter2@h/keys?sslmode=hunter2",
	} {
		if _, err := keystore.Open(ctx, address, time.Now); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v", address, err)
		}
	}
}
