package unary

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/stats"
)

// Handler answers a call at once, or says how to go on: it runs where the connection is read, so it must not wait. request
// is valid only until it returns. An error is best one of google.golang.org/grpc/status; its text goes to the caller.
type Handler func(ctx context.Context, request []byte) (answer []byte, later Later, err error)

// Later goes on with a call that has to wait. ctx ends at the call's deadline, or when the caller gives up; Later must then
// return soon, since Serve waits for it.
type Later func(ctx context.Context) (answer []byte, err error)

// Options of a Server.
type Options struct {
	// MaxRequestBytes bounds one request.
	MaxRequestBytes int
	// Metadata names the headers that a Handler finds in its context as gRPC metadata. All others are dropped.
	Metadata []string
	// ConnectionAge is after which time a connection is told to come anew, give or take a tenth; ConnectionAgeGrace is
	// what its calls then have to end.
	ConnectionAge, ConnectionAgeGrace time.Duration
	// Drain is what calls have to end when the server is told to.
	Drain time.Duration
	// Stats hears of every call, for traces; nil for none.
	Stats stats.Handler
}

// What one server takes on at most. Envoy has a connection for each of its worker threads, and asks for a stream for each
// request that waits for an answer.
const (
	maxConnections   = 1024
	maxStreams       = 1024     // of one connection
	maxBuffered      = 8 << 20  // bytes of requests that have not arrived whole, of one connection
	maxBufferedInAll = 32 << 20 // the same, of all connections
	maxHeaderBytes   = 16 << 10 // of one call; Envoy sends a few hundred
)

// How long a peer may keep the server waiting.
const (
	handshakeTimeout = 10 * time.Second
	writeTimeout     = 10 * time.Second // for a peer that does not read its answers
	maxWait          = 10 * time.Second // of a call that sets no deadline, or a longer one
	linger           = time.Second      // for a peer to read the last answers before the connection is closed
)

// Server serves calls.
type Server struct {
	handlers map[string]Handler
	options  Options
	buffered atomic.Int64 // bytes of requests that have not arrived whole
}

// New returns a Server with a Handler for each method, by its full name: "/package.Service/Method".
func New(handlers map[string]Handler, o Options) *Server {
	s := &Server{handlers: maps.Clone(handlers), options: o}
	if o.Stats != nil {
		for method, h := range handlers {
			s.handlers[method] = observed(o.Stats, method, h)
		}
	}
	return s
}

// Serve answers calls on l until ctx ends; then it finishes those it has begun, within Options.Drain.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	calls, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, maxConnections) // not netutil.LimitListener: its connections cannot be closed by halves
	for {
		conn, err := accept(ctx, l, places)
		if ctx.Err() != nil {
			if err == nil { // it came at the same time
				_ = conn.Close()
			}
			timer := time.AfterFunc(s.options.Drain, abort)
			defer timer.Stop()
			open.Wait()
			return nil
		}
		if err != nil {
			abort()
			return errors.Join(fmt.Errorf("accept a connection: %w", err), l.Close())
		}
		c := newConn(s, conn, calls)
		open.Go(func() {
			defer func() { <-places }()
			defer context.AfterFunc(ctx, c.drain)()
			c.serve()
		})
	}
}

// accept waits for a place, and then for a connection. Of what is over by itself, such as too many open files, it waits for
// the end.
func accept(ctx context.Context, l net.Listener, places chan<- struct{}) (net.Conn, error) {
	const longest = time.Second
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case places <- struct{}{}:
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, longest) { //nolint:mnd // twice as long each time
		conn, err := l.Accept()
		passing := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOMEM)
		if !passing {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
