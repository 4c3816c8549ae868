package pgstore_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
	"sallyport/memory/storetest"
)

var ctx = context.Background()

func open(t *testing.T, address string) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	server := pgtest.Start(t)
	addresses := map[string]string{}
	storetest.Run(t, func(t *testing.T, name string) memory.Store {
		t.Helper()
		if addresses[name] == "" {
			addresses[name] = server.Database(t)
		}
		return open(t, addresses[name])
	})
}

func TestManyReplicasMayStartAtOnce(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := pgstore.Open(ctx, address)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A statement that forgot its namespace would see nothing of another: that is the second wall.
func TestATransactionSeesOnlyTheNamespaceThatItNamed(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	s := open(t, address)
	defer s.Close() //nolint:errcheck // a test
	for _, ns := range []string{"one", "two"} {
		err := s.Write(ctx, ns, func(w memory.Writer) error {
			return w.Append([]belief.Event{{ID: "m-" + ns, Subject: "s", Predicate: "did", Value: belief.Text(ns)}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", address+"&search_path="+pgstore.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // a test
	seen := func() string {
		var ids string
		if err := tx.QueryRow("SELECT coalesce(string_agg(id, ' '), '') FROM events").Scan(&ids); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if got := seen(); got != "" {
		t.Errorf("before it named any it sees %q", got)
	}
	if _, err := tx.Exec("SELECT set_config('sallyport.namespace', num::TEXT, true) FROM namespaces WHERE name = 'two'"); err != nil {
		t.Fatal(err)
	}
	if got := seen(); got != "m-two" {
		t.Errorf("having named two it sees %q", got)
	}
	if _, err := tx.Exec("UPDATE events SET namespace = namespace - 1"); err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a row was moved to another namespace: %v", err)
	}
}

func TestAnErrorHoldsNoPassword(t *testing.T) {
	for _, address := range []string{"postgres://me:s3cret@[::1", "postgres://me:s3cret@127.0.0.1:1/db?connect_timeout=2"} {
		_, err := pgstore.Open(ctx, address)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
	}
}
