package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// prepare makes the schema and its tables; who comes second waits for the first. Who finds them up to date writes nothing
// and takes no lock.
func prepare(ctx context.Context, db *sql.DB, schema string, tables Tables) error {
	provider, err := migrator(db, tables.Migrations)
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	want := sources[len(sources)-1].Version
	have, err := version(ctx, db)
	if err != nil || have >= want { // one that is ahead was migrated by a newer replica, while this one is being replaced
		return err
	}
	may, err := mayMake(ctx, db)
	if err != nil {
		return err
	}
	if !may {
		return fmt.Errorf("its schema is at version %d, this Sallyport needs %d, and this role may not change it: start %s of this version first, whose role may, and check the grants of this one (deploy/postgres-roles.sql)",
			have, want, tables.Migrator)
	}
	if schema == tables.Schema { // another is the operator's to make
		if err := makeSchema(ctx, db, schema); err != nil {
			return err
		}
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func migrator(db *sql.DB, migrations fs.FS) (*goose.Provider, error) {
	const every, times = 1, 300 // seconds; the caller's context ends it sooner
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(every, times))
	if err != nil {
		return nil, fmt.Errorf("make a lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	if len(provider.ListSources()) == 0 {
		return nil, errors.New("read migrations: there are none")
	}
	return provider, nil
}

// version reads what goose noted, without writing: 0 where there is nothing yet, or nothing that this role may see.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	var there, may bool
	err := db.QueryRowContext(ctx, `SELECT t IS NOT NULL, coalesce(has_table_privilege(t, 'SELECT'), false)
		FROM (SELECT to_regclass('goose_db_version')::oid AS t) AS found`).Scan(&there, &may)
	if err != nil {
		return 0, fmt.Errorf("look for the tables: %w", err)
	}
	if !there || !may {
		return 0, nil
	}
	var have int64
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&have); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return have, nil
}

// mayMake says whether this role may make tables in the schema, or the schema itself.
func mayMake(ctx context.Context, db *sql.DB) (may bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'),
		has_database_privilege(current_database(), 'CREATE'))`).Scan(&may)
	if err != nil {
		return false, fmt.Errorf("ask what this role may do: %w", err)
	}
	return may, nil
}

// makeSchema makes the schema, whose name is of our own making.
func makeSchema(ctx context.Context, db *sql.DB, schema string) error {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", schema).Scan(&there); err != nil || there {
		return err
	}
	_, err := db.ExecContext(ctx, `DO $$ BEGIN
		PERFORM pg_advisory_xact_lock(hashtext('`+schema+`'));
		CREATE SCHEMA IF NOT EXISTS `+schema+`;
	END $$`)
	if err != nil {
		return fmt.Errorf("make the schema %s: %w", schema, err)
	}
	return nil
}
