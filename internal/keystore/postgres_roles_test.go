package keystore_test

import (
	"crypto/ed25519"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
	"sallyport/internal/pgtest"
)

// roles makes a database with the roles that we ship, and returns the exchange's address and extauthz's.
func roles(t *testing.T) (exchange, extauthz string) {
	t.Helper()
	address := pgtest.Start(t).Database(t)
	grants, err := os.ReadFile("../../deploy/postgres-roles.sql")
	ok(t, err)
	for range 2 { // again does no harm
		pgtest.Execute(t, address, string(grants))
	}
	return pgtest.As(t, address, "sallyport_exchange"), pgtest.As(t, address, "sallyport_extauthz")
}

func TestExtauthzReadsAndListensAndChangesNothing(t *testing.T) {
	exchange, extauthz := roles(t)
	if _, err := keystore.Open(ctx, extauthz, time.Now); err == nil || !strings.Contains(err.Error(), "start an exchange") {
		t.Errorf("before there are tables: %v", err)
	}
	w, r := openAt(t, exchange), openAt(t, extauthz)
	public, _, err := ed25519.GenerateKey(nil)
	ok(t, err)
	ok(t, w.PublishVerificationKey(ctx, key.VerificationKey{ID: "k", Public: public, NotAfter: time.Now().Add(time.Hour)}))
	ok(t, w.AddKey(ctx, static("x")))
	ok(t, w.AddKey(ctx, static("y")))

	ok(t, r.Ping(ctx))
	if _, err := r.Introspect(ctx, "x"); err != nil {
		t.Error(err)
	}
	if list, err := r.VerificationKeys(ctx); err != nil || len(list) != 1 {
		t.Errorf("%d verification keys, %v", len(list), err)
	}
	h := follow(t, r)
	ok(t, w.Revoke(ctx, "x", "", time.Now()))
	if got := await(t, "it hears", h.ids); got != "x" {
		t.Errorf("heard %q", got)
	}

	for name, write := range map[string]func() error{
		"AddKey": func() error { return r.AddKey(ctx, static("z")) },
		"Revoke": func() error { return r.Revoke(ctx, "y", "", time.Now()) },
		"RevokeMatching": func() error {
			_, err := r.RevokeMatching(ctx, keystore.Selector{All: true}, "", time.Now())
			return err
		},
		"Prune":                  func() error { _, err := r.Prune(ctx, time.Now()); return err },
		"PublishVerificationKey": func() error { return r.PublishVerificationKey(ctx, key.VerificationKey{ID: "l", Public: public}) },
	} {
		if err := write(); err == nil || errors.Is(err, keystore.ErrNotFound) || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s = %v", name, err)
		}
	}
	for _, statement := range []string{
		"CREATE TABLE sallyport_keys.mine ()", "CREATE TABLE public.mine ()", "DROP TABLE sallyport_keys.keys", "TRUNCATE sallyport_keys.keys",
		"INSERT INTO sallyport_keys.goose_db_version (version_id, is_applied) VALUES (99, true)",
	} {
		if _, err := database(t, extauthz).Exec(statement); err == nil {
			t.Errorf("%s: it may", statement)
		}
	}
}

func TestARoleThatMayNotMigrateSaysWhoHasTo(t *testing.T) {
	exchange, extauthz := roles(t)
	openAt(t, exchange)
	pgtest.Execute(t, exchange, "DELETE FROM sallyport_keys.goose_db_version WHERE version_id > 0") // as an older exchange would leave it
	_, err := keystore.Open(ctx, extauthz, time.Now)
	if err == nil || !strings.Contains(err.Error(), "version 0") || !strings.Contains(err.Error(), "start an exchange") {
		t.Errorf("Open = %v", err)
	}
}
