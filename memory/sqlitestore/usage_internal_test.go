package sqlitestore

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/memory/storetest"
)

func TestWhatWasThereBeforeUsageIsCountedWhenTheFileIsBroughtUpToDate(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storetest.Recounted(t, s, func(t *testing.T) {
		t.Helper()
		text, err := migrations.ReadFile("migrations/00003_usage.sql")
		if err != nil {
			t.Fatal(err)
		}
		_, count, _ := strings.Cut(string(text), "STRICT;")
		if _, err := s.db.Write.ExecContext(ctx, "DELETE FROM usage;"+count); err != nil {
			t.Fatal(err)
		}
	})
}
