package pgstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // to count what was read
	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/pgstore"
)

// After some runs of a statement PostgreSQL may go on with a plan for any namespace: then one that holds much was read like
// the many that hold hardly anything, whole and again for each belief that was found.
func TestARecallReadsLittleOfALargeNamespaceBesideManySmallOnesHoweverOftenItIsAsked(t *testing.T) {
	const (
		small, large = 300, 6_000
		asked        = 15 // PostgreSQL may change its mind after five, and again
		fewRows      = 2_000
	)
	address := pgtest.Start(t).Database(t)
	store, err := pgstore.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	for i := range small {
		remembered(t, store, fmt.Sprintf("small-%d", i), 1)
	}
	remembered(t, store, "large", large)
	before := rowsRead(t, store, address)

	if store, err = pgstore.Open(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	service := memory.NewService(store, memory.Options{})
	for range asked {
		found, err := service.Recall(t.Context(), memory.Caller{Namespace: "large"}, memory.RecallArgs{Query: "even"})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatal("nothing was found")
		}
	}
	if read := rowsRead(t, store, address) - before; read > asked*fewRows {
		t.Errorf("a recall read %d rows of %d beliefs; %d would do", read/asked, large, fewRows)
	}
}

// remembered writes n beliefs of one subject.
func remembered(t *testing.T, store memory.Store, namespace string, n int) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"event":{"id":"m-%024d","kind":"fact","subject":"user","predicate":"uses_technology","value":"even number%d","confidence":1,"source":"user_stated","observed_at":"2024-01-01T00:00:00Z"}}`+"\n", i, i)
	}
	if _, err := memory.Import(t.Context(), store, namespace, strings.NewReader(lines.String())); err != nil {
		t.Fatal(err)
	}
}

// rowsRead closes the store, since a connection says at its end for certain what it read, and returns what all have read of
// indexes and tables.
func rowsRead(t *testing.T, store *pgstore.Store, address string) (n int64) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	gone := "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'sallyport'"
	for ended := false; !ended; {
		if err := db.QueryRowContext(context.WithoutCancel(t.Context()), gone).Scan(&ended); err != nil {
			t.Fatal(err)
		}
	}
	err = db.QueryRowContext(t.Context(), "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes) + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
