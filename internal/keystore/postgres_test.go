package keystore_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
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
