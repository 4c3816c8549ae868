package sqlitestore_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"sallyport/memory"
	"sallyport/memory/belief"
	"sallyport/memory/sqlitestore"
)

func TestWhatIsErasedIsInNoFile(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, err := sqlitestore.Open(ctx, filepath.Join(dir, "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test
	for _, ns := range []string{"one", "two"} {
		err := s.Write(ctx, ns, func(w memory.Writer) error {
			return w.Append([]belief.Event{{ID: "m-1", Subject: "s", Predicate: "did", Value: belief.Text("zebracrossing" + ns)}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	holding := func(word string) (n int) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(word)) {
				n++
			}
		}
		return n
	}
	if holding("zebracrossingone") == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	if err := s.Erase(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	if n := holding("zebracrossingone"); n > 0 {
		t.Errorf("%d files still hold it", n)
	}
	if holding("zebracrossingtwo") == 0 {
		t.Error("another namespace was erased too")
	}
}
