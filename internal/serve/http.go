package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second // of a whole request; bodies are at most a few MiB
	idleTimeout       = 2 * time.Minute  // longer than Envoy keeps an idle upstream connection, or it would meet closed ones
	maxHeaderBytes    = 64 << 10
	drain             = 10 * time.Second // for requests in flight when the service is told to end
)

// HTTP serves h on l until ctx ends; then it finishes the requests that it has begun, within ten seconds.
func HTTP(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := server.Shutdown(bound)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were still in flight after %s: %w", drain, err), server.Close())
	}
	if ending := <-ended; !errors.Is(ending, http.ErrServerClosed) {
		err = errors.Join(err, ending)
	}
	return err
}
