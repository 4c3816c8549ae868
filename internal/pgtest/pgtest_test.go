package pgtest_test

import (
	"database/sql"
	"testing"

	"sallyport/internal/pgtest"
)

func TestACommitSurvivesAKill(t *testing.T) {
	server := pgtest.Start(t)
	address := server.Database(t)
	open := func() *sql.DB {
		db, err := sql.Open("pgx", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	if _, err := open().Exec("CREATE TABLE t AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	var n int
	if err := open().QueryRow("SELECT n FROM t").Scan(&n); err != nil || n != 7 {
		t.Fatalf("got %d, %v", n, err)
	}
}

func TestDatabasesAreApartAndTheirOwnersAreNobody(t *testing.T) {
	server := pgtest.Start(t)
	if a, b := server.Database(t), server.Database(t); a == b {
		t.Fatal("two databases have one address")
	}
	db, err := sql.Open("pgx", server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	var above bool
	if err := db.QueryRow("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user").Scan(&above); err != nil || above {
		t.Fatalf("the owner is above row-level security: %v %v", above, err)
	}
}
