// Package filelock holds an advisory lock on a file, so that two processes do not do the same thing to one directory. The
// kernel drops the lock when its holder dies, kill -9 included: there is no stale lock to clean up.
//
// It is for one host: network file systems may not honour it.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HeldError says that another process holds the lock.
type HeldError struct {
	Path string
	PID  int // of the holder; 0 if it did not say
}

// Error names the holder.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Lock is a held lock.
type Lock struct{ file *os.File }

// Try takes the lock at path, which it creates if need be, or fails at once with a *HeldError.
func Try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the caller owns the path
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{Path: path, PID: readPID(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return &Lock{file: f}, nil
}

// Wait takes the lock at path and waits for its holder until ctx ends.
func Wait(ctx context.Context, path string) (*Lock, error) {
	const pause = 20 * time.Millisecond
	for {
		lock, err := Try(path)
		var held *HeldError
		if !errors.As(err, &held) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (waited for it: %w)", held, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// Release gives the lock back. The file stays: removing it would let two holders lock two files of one name.
func (l *Lock) Release() error { return l.file.Close() }

func readPID(f *os.File) int {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0) // a short read at the end of the file is the normal case
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
