package keystore_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
	return followWith(t, s, func(string, time.Time) {}, func() {})
}

// followWith tells others, too.
func followWith(t testing.TB, s keystore.Store, revoked func(id string, at time.Time), resync func()) *heard {
	t.Helper()
	const many = 4096
	h := &heard{ids: make(chan string, many), resyncs: make(chan struct{}, many), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		h.ended <- s.WatchRevocations(ctx,
			func(id string, at time.Time) { revoked(id, at); h.ids <- id },
			func() { resync(); h.resyncs <- struct{}{} })
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

// A notification has no room for two thousand ids: they are read.
func TestOneNotificationTellsOfARevocationOfAnySize(t *testing.T) {
	server := pgtest.Start(t)
	for _, keys := range []int{1, 2000} {
		t.Run(strconv.Itoa(keys)+" keys", func(t *testing.T) {
			address := server.Database(t)
			a, b := openAt(t, address), openAt(t, address)
			for range keys {
				ok(t, a.AddKey(ctx, static(key.NewID())))
			}
			bystander := listen(t, address)
			byA, byB := follow(t, a), follow(t, b)
			ended, err := a.RevokeMatching(ctx, keystore.Selector{All: true}, "gone", time.Now())
			ok(t, err)
			ok(t, a.AddKey(ctx, static("last")))
			ok(t, a.Revoke(ctx, "last", "", time.Now()))
			for name, h := range map[string]*heard{"the one that revoked": byA, "the other": byB} {
				told := map[string]bool{}
				for range len(ended) {
					told[await(t, name+" hears", h.ids)] = true
				}
				if len(ended) != keys || len(told) != keys {
					t.Errorf("%d keys ended, and %s heard of %d; want %d", len(ended), name, len(told), keys)
				}
				if next := await(t, name+" hears", h.ids); next != "last" {
					t.Errorf("%s heard of %s twice", name, next)
				}
			}
			for n, want := range []string{"the revocation of all", "the last one"} {
				if payload := await(t, want, bystander); strings.Contains(payload, `"last"`) != (n == 1) {
					t.Errorf("notification %d is not %s, but %s", n+1, want, payload)
				}
			}
		})
	}
}

// listen returns the notifications as they come from the server.
func listen(t *testing.T, address string) <-chan string {
	t.Helper()
	conn, err := pgx.Connect(ctx, address)
	ok(t, err)
	_, err = conn.Exec(ctx, "LISTEN "+keystore.PostgresSchema)
	ok(t, err)
	payloads := make(chan string, 16)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				return // the test is over
			}
			payloads <- n.Payload
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait(); _ = conn.Close(context.Background()) })
	return payloads
}
