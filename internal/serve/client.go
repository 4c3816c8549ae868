package serve

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// Client returns an HTTP client whose every request goes to address, unix:PATH or HOST:PORT, whatever the host in its URL.
func Client(address string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			return d.DialContext(ctx, "unix", path)
		}
		return d.DialContext(ctx, "tcp", address)
	}}}
}
