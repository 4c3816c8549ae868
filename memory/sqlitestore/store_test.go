package sqlitestore_test

import (
	"context"
	"testing"

	"sallyport/memory"
	"sallyport/memory/sqlitestore"
	"sallyport/memory/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, name string) memory.Store {
		t.Helper()
		s, err := sqlitestore.Open(context.Background(), name+".db")
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
