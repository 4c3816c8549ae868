// Package postgres opens the PostgreSQL databases that Sallyport's replicas share: a bounded number of connections, every
// commit on disk before it is acknowledged, and the schema brought up to date first, by one replica however many start at
// once, and only where the role may.
//
// It knows nothing of keys or memories: each store brings its own schema and statements.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connections bounds those of one pool. PostgreSQL allows a hundred unless told otherwise, to all processes together.
const connections = 16

// DB is one open database.
type DB struct {
	*sql.DB
	config *pgx.ConnConfig
}

// Tables are what a store brings.
type Tables struct {
	Schema     string // where they are, unless the address names another in search_path; made if it is missing
	Migrations fs.FS  // goose, *.sql at its root
	Migrator   string // which command's role makes them, to tell one whose role may not
	// PlanAnew has a statement planned each time for the values that it runs with. PostgreSQL's other way, a plan for any
	// values, is worth its risk only where all values are alike: one namespace may hold a million times what another does.
	PlanAnew bool
}

// Named says whether an address is one of PostgreSQL.
func Named(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// Open connects to the database at a postgres:// address, and applies the migrations that it lacks. Many processes may do
// so at once. A role that may make no tables is told when there is something to make. Errors hold no password.
func Open(ctx context.Context, address string, tables Tables) (*DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the address of the database cannot be read; write postgres://USER@HOST/DATABASE") // its error quotes the address
	}
	parameters := map[string]string{
		"application_name":   "sallyport",
		"search_path":        tables.Schema,
		"synchronous_commit": "on", // what is acknowledged is on disk
	}
	if tables.PlanAnew {
		parameters["plan_cache_mode"] = "force_custom_plan"
	}
	for name, value := range parameters {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	const connect, idle = 5 * time.Second, 5 * time.Minute
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connect {
		config.ConnectTimeout = connect
	}
	db := &DB{DB: stdlib.OpenDB(*config), config: config}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(idle)
	if err := prepare(ctx, db.DB, config.RuntimeParams["search_path"], tables); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the database: %w", err), db.Close())
	}
	return db, nil
}

// Dial makes a connection beside the pool, for one who listens. The caller closes it.
func (db *DB) Dial(ctx context.Context) (*pgx.Conn, error) {
	config := db.config.Copy()
	config.RuntimeParams = maps.Clone(config.RuntimeParams)
	return pgx.ConnectConfig(ctx, config)
}

// DropIdle closes the connections that nobody uses just now: when one is lost, so are the others, and each would fail one
// more caller.
func (db *DB) DropIdle() {
	db.SetMaxIdleConns(-1)
	db.SetMaxIdleConns(connections)
}

// Lost says whether a call failed because its connection ended, so that another one may do.
func Lost(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var told *pgconn.PgError
	if errors.As(err, &told) {
		const connectionException, operatorIntervention, queryCanceled = "08", "57", "57014"
		return told.Code != queryCanceled && (strings.HasPrefix(told.Code, connectionException) || strings.HasPrefix(told.Code, operatorIntervention))
	}
	var network net.Error
	return pgconn.SafeToRetry(err) || errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
}
