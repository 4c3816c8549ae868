package pgstore

import (
	"context"
	"strings"
	"testing"

	"sallyport/internal/pgtest"
	"sallyport/memory/storetest"
)

func TestWhatWasThereBeforeUsageIsCountedWhenTheSchemaIsBroughtUpToDate(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, pgtest.Start(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storetest.Recounted(t, s, func(t *testing.T) {
		t.Helper()
		text, err := migrations.ReadFile("migrations/00002_usage.sql")
		if err != nil {
			t.Fatal(err)
		}
		_, count, _ := strings.Cut(string(text), "StatementBegin")
		count, _, _ = strings.Cut(count, "-- +goose StatementEnd")
		// The table has row-level security only after this step.
		for _, statement := range []string{"TRUNCATE usage", "ALTER TABLE usage NO FORCE ROW LEVEL SECURITY", count, "ALTER TABLE usage FORCE ROW LEVEL SECURITY"} {
			if _, err := s.db.ExecContext(ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
	})
}
