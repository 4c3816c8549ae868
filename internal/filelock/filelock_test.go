package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/filelock"
)

func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = filelock.Try(path)
	var held *filelock.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("the second Try = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := filelock.Wait(ctx, path); !errors.As(err, &held) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait = %v", err)
	}

	got := make(chan error, 1)
	go func() {
		second, err := filelock.Wait(context.Background(), path)
		if err == nil {
			err = second.Release()
		}
		got <- err
	}()
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestALockThatCannotBeMadeIsAnError(t *testing.T) {
	if _, err := filelock.Try(filepath.Join(t.TempDir(), "no", "x.lock")); err == nil {
		t.Error("it was taken")
	}
}
