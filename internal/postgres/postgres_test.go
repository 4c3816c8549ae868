package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgconn"

	"sallyport/internal/pgtest"
	"sallyport/internal/postgres"
)

var ctx = context.Background()

func tables(schema string, steps ...string) postgres.Tables {
	files := fstest.MapFS{}
	for i, step := range steps {
		files[fmt.Sprintf("%05d_step.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + step + "\n")}
	}
	return postgres.Tables{Schema: schema, Migrations: files, Migrator: "the writer"}
}

const (
	first  = "CREATE TABLE t (v INTEGER NOT NULL);"
	second = "ALTER TABLE t ADD COLUMN w INTEGER NOT NULL DEFAULT 0;"
)

func open(t *testing.T, address string, tables postgres.Tables) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(ctx, address, tables)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestTablesAreBroughtUpToDateAndNeverBack(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	open(t, address, tables("mine", first))
	open(t, address, tables("mine", first, second))
	older := open(t, address, tables("mine", first)) // is being replaced
	if _, err := older.Exec("INSERT INTO t (v, w) VALUES (1, 2)"); err != nil {
		t.Error(err)
	}
	open(t, address, tables("other", first)) // in the same database, apart
}

func TestASchemaThatTheAddressNamesIsTheOperators(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	if _, err := postgres.Open(ctx, address+"&search_path=theirs", tables("mine", first)); err == nil {
		t.Error("a schema that is not there was made")
	}
	pgtest.Execute(t, address, "CREATE SCHEMA theirs; GRANT ALL ON SCHEMA theirs TO PUBLIC")
	var schema string
	if err := open(t, address+"&search_path=theirs", tables("mine", first)).QueryRow("SELECT current_schema()").Scan(&schema); err != nil || schema != "theirs" {
		t.Errorf("schema %q, %v", schema, err)
	}
}

func TestARoleThatMayMakeNothingIsToldWhoHasTo(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	open(t, address, tables("mine", first))
	pgtest.Execute(t, address, "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA mine TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA mine TO reader")
	reader := pgtest.As(t, address, "reader")
	open(t, reader, tables("mine", first))
	_, err := postgres.Open(ctx, reader, tables("mine", first, second))
	if err == nil || !strings.Contains(err.Error(), "version 1") || !strings.Contains(err.Error(), "start the writer") {
		t.Errorf("Open = %v", err)
	}
}

func TestWhatALostConnectionIs(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		lost bool
	}{
		"nothing":             {nil, false},
		"ended by the server": {&pgconn.PgError{Code: "57P01"}, true},
		"it starts":           {&pgconn.PgError{Code: "57P03"}, true},
		"too slow":            {&pgconn.PgError{Code: "57014"}, false},
		"a wrong statement":   {&pgconn.PgError{Code: "42601"}, false},
		"cut":                 {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		"refused":             {&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		"the caller's time":   {context.DeadlineExceeded, false},
		"the caller went":     {&net.OpError{Op: "read", Err: context.Canceled}, false},
	} {
		if got := postgres.Lost(c.err); got != c.lost {
			t.Errorf("%s: lost = %t", name, got)
		}
	}
}

func TestAddressesOfPostgresAreKnown(t *testing.T) {
	for address, want := range map[string]bool{"postgres://h/d": true, "postgresql://h/d": true, "postgres:h": false, "sqlite:/p": false, "": false} {
		if postgres.Named(address) != want {
			t.Errorf("%q", address)
		}
	}
}
