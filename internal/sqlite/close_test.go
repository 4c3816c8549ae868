package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/sqlite"
)

// Time stands still in these tests while anybody does something, and else jumps to where somebody wants to go on.

func TestCloseWaitsForWhoeverUsesTheFile(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *sqlite.DB) (end func() error){
		"a transaction that writes": func(t *testing.T, db *sqlite.DB) func() error { return transaction(t, db.Write).Rollback },
		"a transaction that reads":  func(t *testing.T, db *sqlite.DB) func() error { return transaction(t, db.Read).Rollback },
		"a connection that is held": func(t *testing.T, db *sqlite.DB) func() error {
			held, err := db.Read.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return held.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				db := open(t, dir)
				end := begin(t, db)
				var err error
				closed := make(chan struct{})
				go func() { err = db.Close(); close(closed) }()
				time.Sleep(4 * time.Second)
				select {
				case <-closed:
					t.Error("it did not wait")
				default:
				}
				if err := end(); err != nil {
					t.Error(err)
				}
				<-closed
				if err != nil {
					t.Error(err)
				}
				if got := files(t, dir); !slices.Equal(got, []string{"x.db", "x.db.lock"}) {
					t.Errorf("left beside the file: %q", got)
				}
			})
		})
	}
}

func TestCloseWaitsForTheRollbackOfWhatWasCancelled(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := open(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := db.Write.BeginTx(ctx, nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if got := files(t, dir); !slices.Equal(got, []string{"x.db", "x.db.lock"}) {
			t.Errorf("left beside the file: %q", got)
		}
	})
}

func TestCloseSaysWhatIsStillOpen(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := open(t, dir)
		write, read, more := transaction(t, db.Write), transaction(t, db.Read), transaction(t, db.Read)
		began := time.Now()
		err := db.Close()
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "x.db")) || !strings.Contains(err.Error(), "1 to write, 2 to read") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %s", took)
		}
		for _, tx := range []*sql.Tx{write, read, more} {
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func open(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "x.db"), migrations)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// transaction begins one that has looked at the file.
func transaction(t *testing.T, pool *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := pool.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return tx
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
