// Package sqlite opens the SQLite files that Sallyport keeps: one writer, readers beside it, every commit on disk before
// it is acknowledged, and the schema brought up to date first.
//
// It knows nothing of keys or memories: each store brings its own schema and statements.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver, without cgo

	"sallyport/internal/filelock"
)

// readers bounds the read connections to one file. Reads are short, and a laptop or a pod has few cores.
const readers = 8

// DB is one open file.
type DB struct {
	Write *sql.DB // a single connection, whose transactions take the write lock when they begin
	Read  *sql.DB // read-only connections, which never wait for the writer (WAL)
	Path  string
}

// Open opens the file at path, creates it (mode 0600) if there is none, and applies the migrations (goose, *.sql at the root of the
// file system) that it lacks. Several processes may open one file at the same time. more sets further pragmas on each
// connection, such as CacheKiB.
func Open(ctx context.Context, path string, migrations fs.FS, more ...Pragma) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", path, err)
	}
	if err := touch(path); err != nil {
		return nil, err
	}
	db, err := pools(path, more)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, db.Write, path, migrations); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", path, err), db.Close())
	}
	return db, nil
}

// pools returns the two pools, which open no connection yet.
func pools(path string, more []Pragma) (*DB, error) {
	write, err := sql.Open("sqlite", dsn(path, slices.Concat(writerPragmas, more), "_txlock=immediate"))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	read, err := sql.Open("sqlite", dsn(path, slices.Concat(readerPragmas, more)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s for reading: %w", path, err), write.Close())
	}
	write.SetMaxOpenConns(1)
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return &DB{Write: write, Read: read, Path: path}, nil
}

// closeWithin bounds how long Close waits: as long as SQLite itself waits for a lock.
const closeWithin = 5 * time.Second

// Close closes the file. When it returns nil, this DB touches neither the file nor those beside it any more. It waits for
// whoever still uses a connection; when that takes over five seconds, its error says how many are still open.
func (db *DB) Close() error {
	return errors.Join(db.Read.Close(), db.Write.Close(), db.awaitUnused())
}

// awaitUnused waits until the connections are closed. sql.DB.Close closes the idle ones alone: each of the others is
// closed when its user is done with it. That user may be database/sql itself, which rolls back a transaction whose context
// ended in a goroutine of its own, though the transaction's Rollback has already returned.
func (db *DB) awaitUnused() error {
	const every = time.Millisecond
	for end := time.Now().Add(closeWithin); ; time.Sleep(every) {
		writing, reading := db.Write.Stats().OpenConnections, db.Read.Stats().OpenConnections
		if writing+reading == 0 {
			return nil
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("close %s: after %s these connections are still open: %d to write, %d to read", db.Path, closeWithin, writing, reading)
		}
	}
}

var (
	// synchronous=FULL: in WAL mode NORMAL may lose the last commits when the machine loses power.
	writerPragmas = []Pragma{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)"}
	readerPragmas = []Pragma{"busy_timeout(5000)", "query_only(ON)"}
)

// Pragma is a setting of SQLite's, written name(value).
type Pragma string

// CacheKiB bounds the pages that each connection keeps in memory. SQLite's own bound is 2000 KiB, which a file that is read a
// row at a time does not need: the kernel has its pages too.
func CacheKiB(n int) Pragma { return Pragma(fmt.Sprintf("cache_size(-%d)", n)) }

func dsn(path string, pragmas []Pragma, more ...string) string {
	q := url.Values{}
	for _, p := range pragmas {
		q.Add("_pragma", string(p))
	}
	s := (&url.URL{Scheme: "file", Path: path}).String() + "?" + q.Encode()
	for _, m := range more {
		s += "&" + m
	}
	return s
}

// touch creates the file with mode 0600 before SQLite does, which would follow the umask.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the path
	if err != nil {
		return fmt.Errorf("create database file: %w", err)
	}
	return f.Close()
}

// migrate holds a file lock meanwhile: two processes that start at once must not apply one migration twice.
func migrate(ctx context.Context, db *sql.DB, path string, migrations fs.FS) (err error) {
	lock, err := filelock.Wait(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
