package keystore

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestACallerWaitsForABusyFileNoLongerThanItWantsTo(t *testing.T) {
	s, err := openSQLite(t.Context(), filepath.Join(t.TempDir(), "keys.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // it has no say in this
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var release []func() error
	for range s.db.Read.Stats().MaxOpenConnections {
		c, err := s.db.Read.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, c.Close)
	}
	for range 2 * introspectors { // at first each reader waits for a connection, and then all of them do
		if _, err := s.Introspect(gone, "any"); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
	}
	for _, give := range release {
		if err := give(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Introspect(t.Context(), "any"); !errors.Is(err, ErrNotFound) {
		t.Errorf("when the file is free again: %v", err)
	}
}
