// Package serve opens the addresses that services listen on, and runs HTTP servers that end when they are told to.
//
// It knows nothing of what is served.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// maxSocketPath is what the path of a unix socket may have, in bytes: 108 with the closing NUL on Linux, 104 elsewhere.
const maxSocketPath = 103

// Listen opens unix:PATH or HOST:PORT. A socket file is for its owner alone (0600); one that a dead process left is
// replaced, one that a living process serves is not.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	var lc net.ListenConfig
	if !unix {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("listen address %q: give unix:PATH or HOST:PORT", address)
		}
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		return l, nil
	}
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), l.Close())
	}
	return l, nil
}

// CheckSocketPath says what is wrong with the path of a unix socket.
func CheckSocketPath(path string) error {
	if path == "" {
		return errors.New("the unix socket has no path: give unix:PATH")
	}
	if len(path) > maxSocketPath {
		return fmt.Errorf("the path of the unix socket %s has %d bytes, and the system allows %d: use a shorter directory", path, len(path), maxSocketPath)
	}
	return nil
}

func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is not a socket: remove it, or listen elsewhere", path)
	}
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "unix", path); err == nil {
		return errors.Join(fmt.Errorf("another process serves %s", path), conn.Close())
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}
