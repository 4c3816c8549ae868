package keystore_test

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
	"sallyport/internal/keystore/keystoretest"
	"sallyport/internal/pgtest"
)

var ctx = context.Background()

func openAt(t testing.TB, address string) keystore.Store {
	t.Helper()
	s, err := keystore.Open(ctx, address, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}

func static(id string) keystore.Record {
	return keystore.Record{ID: id, Kind: keystore.Static, Namespace: "n", SecretHash: key.HashSecret(id), CreatedAt: time.Now()}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	keystoretest.Run(t, func(t *testing.T) func(now func() time.Time) keystore.Store {
		address := server.Database(t)
		return func(now func() time.Time) keystore.Store {
			s, err := keystore.Open(ctx, address, now)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
			return s
		}
	})
}

func TestReplicasThatStartAtOnceMakeTheTablesOnce(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := keystore.Open(ctx, address, time.Now)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.Ping(ctx), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db := database(t, address)
	var once bool
	ok(t, db.QueryRow("SELECT count(*) = count(DISTINCT version_id) FROM "+keystore.PostgresSchema+".goose_db_version").Scan(&once))
	if !once {
		t.Error("a migration is noted twice")
	}
}

func database(t testing.TB, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", address)
	ok(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// heard follows a store; ended holds what the watch returned.
type heard struct {
	ids     chan string
	resyncs chan struct{}
	ended   chan error
}

func follow(t testing.TB, s keystore.Store) *heard {
	t.Helper()
	const many = 1000
	h := &heard{ids: make(chan string, many), resyncs: make(chan struct{}, many), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		h.ended <- s.WatchRevocations(ctx, func(id string, _ time.Time) { h.ids <- id }, func() { h.resyncs <- struct{}{} })
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	await(t, "the watch resyncs", h.resyncs)
	return h
}

func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(keystoretest.Deadline):
		t.Fatalf("%s: not within %s", what, keystoretest.Deadline)
		panic("not reached")
	}
}

func TestReplicasHearEachOther(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	a, b := openAt(t, address), openAt(t, address)
	byA, byB := follow(t, a), follow(t, b)
	ids := []string{"x", "y", "z"}
	for i, s := range []keystore.Store{a, b, a} {
		ok(t, s.AddKey(ctx, static(ids[i])))
		ok(t, s.Revoke(ctx, ids[i], "because", time.Now()))
		for name, h := range map[string]*heard{"a": byA, "b": byB} {
			if got := await(t, name+" hears", h.ids); got != ids[i] {
				t.Errorf("%s heard %q, want %q: one of them twice, or not at all", name, got, ids[i])
			}
		}
	}
}

func TestAPodOfManyKeysIsRevokedAsAWhole(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	a, b := openAt(t, address), openAt(t, address)
	const keys = 230 // more than one notification holds
	for range keys {
		ok(t, a.AddKey(ctx, keystore.Record{
			ID: key.NewID(), Kind: keystore.Signed, Namespace: "n:p", PodUID: "uid", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		}))
	}
	h := follow(t, b)
	ended, err := a.RevokePod(ctx, "uid", "gone", time.Now())
	ok(t, err)
	if len(ended) != keys {
		t.Errorf("%d keys ended, want %d", len(ended), keys)
	}
	told := map[string]bool{}
	for range keys {
		told[await(t, "the other replica hears", h.ids)] = true
	}
	if len(told) != keys {
		t.Errorf("%d keys were told, want %d", len(told), keys)
	}
}

func TestAWatchWhoseConnectionIsLostEndsAndTheNextOneResyncs(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	s := openAt(t, address)
	h := follow(t, s)
	began := time.Now()
	pgtest.Execute(t, address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
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
			if _, err := s.Key(ctx, "x"); err != nil {
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
		"Key":    func() error { _, err := s.Key(ctx, "x"); return err },
		"Revoke": func() error { return s.Revoke(ctx, "x", "", time.Now()) },
		"Ping":   func() error { return s.Ping(ctx) },
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
	_, err := s.Key(ctx, "x")
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
				if _, err := s.Key(ctx, "x"); err != nil {
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

// roles makes a database with the roles that we ship, and returns the exchange's address and extauthz's.
func roles(t *testing.T) (exchange, extauthz string) {
	t.Helper()
	address := pgtest.Start(t).Database(t)
	grants, err := os.ReadFile("../../deploy/postgres-roles.sql")
	ok(t, err)
	for range 2 { // again does no harm
		pgtest.Execute(t, address, string(grants))
	}
	return pgtest.As(t, address, "sallyport_exchange"), pgtest.As(t, address, "sallyport_extauthz")
}

func TestExtauthzReadsAndListensAndChangesNothing(t *testing.T) {
	exchange, extauthz := roles(t)
	if _, err := keystore.Open(ctx, extauthz, time.Now); err == nil || !strings.Contains(err.Error(), "start an exchange") {
		t.Errorf("before there are tables: %v", err)
	}
	w, r := openAt(t, exchange), openAt(t, extauthz)
	public, _, err := ed25519.GenerateKey(nil)
	ok(t, err)
	ok(t, w.PublishVerificationKey(ctx, key.VerificationKey{ID: "k", Public: public, NotAfter: time.Now().Add(time.Hour)}))
	ok(t, w.AddKey(ctx, static("x")))
	ok(t, w.AddKey(ctx, static("y")))

	ok(t, r.Ping(ctx))
	if _, err := r.Key(ctx, "x"); err != nil {
		t.Error(err)
	}
	if list, err := r.VerificationKeys(ctx); err != nil || len(list) != 1 {
		t.Errorf("%d verification keys, %v", len(list), err)
	}
	h := follow(t, r)
	ok(t, w.Revoke(ctx, "x", "", time.Now()))
	if got := await(t, "it hears", h.ids); got != "x" {
		t.Errorf("heard %q", got)
	}

	for name, write := range map[string]func() error{
		"AddKey":                 func() error { return r.AddKey(ctx, static("z")) },
		"Revoke":                 func() error { return r.Revoke(ctx, "y", "", time.Now()) },
		"RevokePod":              func() error { _, err := r.RevokePod(ctx, "uid", "", time.Now()); return err },
		"Prune":                  func() error { _, err := r.Prune(ctx, time.Now()); return err },
		"PublishVerificationKey": func() error { return r.PublishVerificationKey(ctx, key.VerificationKey{ID: "l", Public: public}) },
	} {
		if err := write(); err == nil || errors.Is(err, keystore.ErrNotFound) || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s = %v", name, err)
		}
	}
	for _, statement := range []string{
		"CREATE TABLE sallyport_keys.mine ()", "CREATE TABLE public.mine ()", "DROP TABLE sallyport_keys.keys", "TRUNCATE sallyport_keys.keys",
		"INSERT INTO sallyport_keys.goose_db_version (version_id, is_applied) VALUES (99, true)",
	} {
		if _, err := database(t, extauthz).Exec(statement); err == nil {
			t.Errorf("%s: it may", statement)
		}
	}
}

func TestARoleThatMayNotMigrateSaysWhoHasTo(t *testing.T) {
	exchange, extauthz := roles(t)
	openAt(t, exchange)
	pgtest.Execute(t, exchange, "DELETE FROM sallyport_keys.goose_db_version WHERE version_id > 0") // as an older exchange would leave it
	_, err := keystore.Open(ctx, extauthz, time.Now)
	if err == nil || !strings.Contains(err.Error(), "version 0") || !strings.Contains(err.Error(), "start an exchange") {
		t.Errorf("Open = %v", err)
	}
}
