package devcluster

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"sallyport/exchange/sandbox"
	"sallyport/internal/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Cluster keeps the objects in one SQLite file, which `up` and the `dev` commands share. It implements sandbox.Cluster.
type Cluster struct{ db *sqlite.DB }

// Open opens the cluster in the file at path, and makes it if there is none.
func Open(ctx context.Context, path string) (*Cluster, error) {
	schema, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("find development cluster schema: %w", err)
	}
	db, err := sqlite.Open(ctx, path, schema)
	if err != nil {
		return nil, fmt.Errorf("open development cluster: %w", err)
	}
	return &Cluster{db: db}, nil
}

// Close closes the file.
func (c *Cluster) Close() error { return c.db.Close() }

const (
	kindPod     = "Pod"
	kindSandbox = sandbox.KindSandbox
	kindClaim   = sandbox.KindClaim
)

// Pod implements sandbox.Cluster.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (sandbox.Pod, error) {
	return get[sandbox.Pod](ctx, c.db.Read, kindPod, namespace, name)
}

// ServiceAccount implements sandbox.Cluster. Every account exists, and none has a label.
func (c *Cluster) ServiceAccount(_ context.Context, namespace, name string) (sandbox.ServiceAccount, error) {
	return sandbox.ServiceAccount{Meta: sandbox.Meta{Namespace: namespace, Name: name}}, nil
}

// Sandbox implements sandbox.Cluster.
func (c *Cluster) Sandbox(ctx context.Context, namespace, name string) (sandbox.Sandbox, error) {
	return get[sandbox.Sandbox](ctx, c.db.Read, kindSandbox, namespace, name)
}

// Claim implements sandbox.Cluster.
func (c *Cluster) Claim(ctx context.Context, namespace, name string) (sandbox.Claim, error) {
	return get[sandbox.Claim](ctx, c.db.Read, kindClaim, namespace, name)
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func get[T any](ctx context.Context, q querier, kind, namespace, name string) (T, error) {
	var (
		object T
		text   string
	)
	err := q.QueryRowContext(ctx, "SELECT object FROM objects WHERE kind = ? AND namespace = ? AND name = ?", kind, namespace, name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return object, sandbox.ErrNotFound
	}
	if err != nil {
		return object, fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return object, fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
	}
	return object, nil
}

// change is one transaction on the cluster.
type change struct{ tx *sql.Tx }

// update runs f in a transaction, which other processes see as a whole or not at all.
func (c *Cluster) update(ctx context.Context, f func(change) error) error {
	tx, err := c.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("change development cluster: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := f(change{tx}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("change development cluster: %w", err)
	}
	return nil
}

func (c change) put(ctx context.Context, kind string, m sandbox.Meta, object any) error {
	text, err := json.Marshal(object)
	if err == nil {
		_, err = c.tx.ExecContext(ctx, "INSERT OR REPLACE INTO objects (kind, namespace, name, object) VALUES (?, ?, ?, ?)",
			kind, m.Namespace, m.Name, string(text))
	}
	if err != nil {
		return fmt.Errorf("write %s %s/%s: %w", kind, m.Namespace, m.Name, err)
	}
	return nil
}

func (c change) delete(ctx context.Context, kind, namespace, name string) error {
	res, err := c.tx.ExecContext(ctx, "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", kind, namespace, name)
	if err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", kind, namespace, name, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(fmt.Errorf("%s %s/%s does not exist", kind, namespace, name), err)
	}
	return nil
}
