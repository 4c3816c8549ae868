package pgstore_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/pgtest"
	"sallyport/memory"
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

// A statement that forgot its namespace would see nothing of another: that is the second wall. The tables are those that
// the database has, so that one without the wall fails here.
func TestATransactionSeesOnlyTheNamespaceThatItOpened(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	s := open(t, address)
	defer s.Close() //nolint:errcheck // a test
	storetest.Fill(t, s, "one", "secret")
	storetest.Fill(t, s, "two", "public")
	db, err := sql.Open("pgx", address+"&search_path="+pgstore.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	seen := func(table, opened string) (own, all int) {
		t.Helper()
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback() //nolint:errcheck // nothing was written
		number := "namespace"
		if table == "namespaces" {
			number = "num"
		}
		if opened != "" {
			if _, err := tx.Exec("SELECT open_namespace($1, false)", opened); err != nil {
				t.Fatal(err)
			}
		}
		err = tx.QueryRow("SELECT count(*) FILTER (WHERE "+number+" = nullif(current_setting('sallyport.namespace', true), '')::BIGINT), count(*) FROM "+table).Scan(&own, &all)
		if err != nil {
			t.Fatal(err)
		}
		return own, all
	}
	for _, table := range tables(t, db) {
		for _, opened := range []string{"one", "two"} {
			if own, all := seen(table, opened); own == 0 || all != own {
				t.Errorf("having opened %s one sees %d rows of %s, %d of them its own", opened, all, table, own)
			}
		}
		for _, opened := range []string{"", "three"} {
			if _, all := seen(table, opened); all > 0 {
				t.Errorf("having opened %q one sees %d rows of %s", opened, all, table)
			}
		}
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // a test
	if _, err := tx.Exec("SELECT open_namespace('two', false)"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE events SET namespace = namespace - 1"); err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a row was moved to another namespace: %v", err)
	}
}

// tables returns those that the schema has, but for the one in which its version is noted.
func tables(t *testing.T, db *sql.DB) (out []string) {
	t.Helper()
	rows, err := db.Query("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'm', 'v') AND relname <> 'goose_db_version'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // a test
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	if err := rows.Err(); err != nil || len(out) < 2 {
		t.Fatalf("tables: %v %v", out, err)
	}
	return out
}

func TestAnErrorHoldsNoPassword(t *testing.T) {
	for _, address := range []string{"postgres://me:s3cret@[::1", "postgres://me:s3cret@127.0.0.1:1/db?connect_timeout=2"} {
		_, err := pgstore.Open(ctx, address)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
	}
}
