package keystore_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/keystore"
	"sallyport/internal/keystore/keystoretest"
)

func TestSQLite(t *testing.T) {
	keystoretest.Run(t, func(t *testing.T) func(now func() time.Time) keystore.Store {
		path := filepath.Join(t.TempDir(), "keys.db")
		return func(now func() time.Time) keystore.Store {
			s, err := keystore.Open(context.Background(), "sqlite:"+path, now)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
			return s
		}
	})
}

func TestOpenSaysWhichStoresThereAreAndQuotesNoPassword(t *testing.T) {
	for _, address := range []string{"", "keys.db", "sqlite:", "redis://u:hunter2@h/0"} {
		_, err := keystore.Open(context.Background(), address, time.Now)
		if err == nil || !strings.Contains(err.Error(), "sqlite:PATH") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v", address, err)
		}
	}
}
