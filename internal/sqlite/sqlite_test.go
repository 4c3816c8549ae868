package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"sallyport/internal/sqlite"
)

var migrations = fstest.MapFS{
	"00001_init.sql": {Data: []byte("-- +goose Up\nCREATE TABLE t (v INTEGER NOT NULL) STRICT;\n")},
}

func TestOpen(t *testing.T) {
	t.Run("several openers at once each find the schema, applied once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a b?#.db") // characters that a URL would eat
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				db, err := sqlite.Open(context.Background(), path, migrations)
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close() //nolint:errcheck // a test
				if _, err := db.Write.Exec("INSERT INTO t VALUES (1)"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		db, err := sqlite.Open(context.Background(), path, migrations)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // a test
		var n int
		if err := db.Read.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil || n != 8 {
			t.Fatalf("count = %d, %v; want 8", n, err)
		}
		if _, err := db.Read.Exec("INSERT INTO t VALUES (2)"); err == nil {
			t.Fatal("a read connection wrote")
		}
	})
	t.Run("the file is for its owner alone, and commits wait for the disk", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.db")
		db, err := sqlite.Open(context.Background(), path, migrations)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // a test
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode = %v, %v; want 0600", info.Mode(), err)
		}
		var mode string
		var sync int
		if err := db.Write.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
			t.Fatalf("journal_mode = %q, %v", mode, err)
		}
		const full = 2
		if err := db.Write.QueryRow("PRAGMA synchronous").Scan(&sync); err != nil || sync != full {
			t.Fatalf("synchronous = %d, %v; want FULL", sync, err)
		}
	})
}
