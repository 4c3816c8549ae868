package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"sallyport/gateway/xds"
)

// Config says what to run. Only Gateway must be given.
type Config struct {
	Gateway     xds.Gateway
	Binary      string       // path of the Envoy binary; "" for Find
	Concurrency int          // worker threads; 0 for DefaultConcurrency
	Logger      *slog.Logger // Envoy's own log and the supervisor's; nil for slog.Default
	LogLevel    string       // how much Envoy says: debug, info, warning, error; "" for warning
	AccessLog   io.Writer    // where /dev/stdout in Gateway.AccessLog leads; nil for os.Stdout

	// Bootstrap turns Gateway into Envoy's configuration; nil for xds.Bootstrap. It is for who needs what a Gateway cannot say.
	Bootstrap func(xds.Gateway) (*bootstrapv3.Bootstrap, error)

	ReadyTimeout time.Duration // for a start; 0 for DefaultReadyTimeout
	DrainTimeout time.Duration // for requests under way when the context ends; 0 for DefaultDrainTimeout
}

// The defaults of a Config.
const (
	DefaultConcurrency  = 2 // a sidecar shares its cores with what it protects; Envoy's default is all of the host's
	DefaultReadyTimeout = 20 * time.Second
	DefaultDrainTimeout = 5 * time.Second

	termTimeout = 5 * time.Second // between SIGTERM and SIGKILL
	minBackoff  = 100 * time.Millisecond
	maxBackoff  = 10 * time.Second
	stableAfter = time.Minute // an Envoy that lived this long starts the back-off anew
)

// Supervisor runs one Envoy and keeps it running.
type Supervisor struct {
	gateway      xds.Gateway
	binary       string
	concurrency  int
	log          *slog.Logger
	logLevel     string
	accessLog    io.Writer
	readyTimeout time.Duration
	drainTimeout time.Duration

	admin *admin
	ready chan struct{} // closed when Envoy first takes requests
	addr  atomic.Pointer[netip.AddrPort]
	pid   atomic.Int64

	bootstrap func(xds.Gateway) (*bootstrapv3.Bootstrap, error)

	// Hooks for tests.
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
}

// New checks the configuration and finds the binary. It starts nothing.
func New(c Config) (*Supervisor, error) {
	g := c.Gateway.WithDefaults()
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if c.Concurrency < 0 {
		return nil, fmt.Errorf("envoy: %d worker threads: use at least 1, or 0 for the default", c.Concurrency)
	}
	if c.Binary == "" {
		var err error
		if c.Binary, err = Find(); err != nil {
			return nil, err
		}
	}
	s := &Supervisor{
		gateway:      g,
		binary:       c.Binary,
		concurrency:  or(c.Concurrency, DefaultConcurrency),
		log:          c.Logger,
		logLevel:     or(c.LogLevel, "warning"),
		accessLog:    c.AccessLog,
		readyTimeout: or(c.ReadyTimeout, DefaultReadyTimeout),
		drainTimeout: or(c.DrainTimeout, DefaultDrainTimeout),
		admin:        newAdmin(g.Admin),
		ready:        make(chan struct{}),
		bootstrap:    c.Bootstrap,
		now:          time.Now,
		after:        time.After,
	}
	if s.bootstrap == nil {
		s.bootstrap = xds.Bootstrap
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.accessLog == nil {
		s.accessLog = os.Stdout
	}
	return s, nil
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Ready is closed when Envoy first takes requests. It stays open if Run returns before that.
func (s *Supervisor) Ready() <-chan struct{} { return s.ready }

// Addr is where callers reach Envoy, valid once Ready is closed; it stays the same over restarts.
func (s *Supervisor) Addr() netip.AddrPort {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return netip.AddrPort{}
}

// PID is the process that runs now, or ran last; 0 before the first.
func (s *Supervisor) PID() int { return int(s.pid.Load()) }

// Run starts Envoy, starts it again whenever it dies, and blocks until ctx ends and Envoy has drained and is gone; it then
// returns nil. An Envoy that does not come up the first time is an error at once: its configuration or its port is wrong,
// and trying again would not help. Call it once.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.checkAdminFree(ctx); err != nil {
		return err
	}
	defer s.removeAdminSocket()
	for _, w := range s.gateway.Warnings() {
		s.log.Warn(w)
	}
	backoff := minBackoff
	for {
		started := s.now()
		err := s.runOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case s.addr.Load() == nil:
			return err
		}
		if s.now().Sub(started) >= stableAfter {
			backoff = minBackoff
		}
		s.log.Error("Envoy died and is started again", "error", err, "address", s.Addr(), "wait", backoff)
		select {
		case <-ctx.Done():
			return nil
		case <-s.after(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// runOnce runs one Envoy until it dies or ctx ends, and leaves no process behind. Its error says why Envoy is gone.
func (s *Supervisor) runOnce(ctx context.Context) error {
	bootstrap, err := s.bootstrap(s.gateway)
	if err != nil {
		return err
	}
	configuration, err := protojson.Marshal(bootstrap)
	if err != nil {
		return fmt.Errorf("print Envoy's configuration: %w", err)
	}
	c, err := s.start(configuration) //nolint:contextcheck // Envoy outlives ctx: it is drained when ctx ends
	if err != nil {
		return err
	}
	s.pid.Store(int64(c.process.Pid))
	if err := s.waitReady(ctx, c); err != nil {
		s.end(c, os.Kill) // it has taken no request yet
		return err
	}
	select {
	case <-c.exited:
		return c.death()
	case <-ctx.Done():
		s.drain(ctx, c)
		return nil
	}
}

// waitReady waits until Envoy answers, and learns its address.
func (s *Supervisor) waitReady(ctx context.Context, c *child) error {
	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, s.readyTimeout, fmt.Errorf("envoy was not ready within %s", s.readyTimeout))
	defer cancel()
	for s.admin.ready(ctx) != nil {
		select {
		case <-c.exited:
			return s.startFailure(c)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	addr, err := s.admin.listenAddress(ctx)
	if err != nil {
		return err
	}
	s.log.Info("Envoy is ready", "address", addr, "admin", s.gateway.Admin, "process", c.process.Pid,
		"check_timeout", s.gateway.Authz.Timeout, "backend", s.gateway.Backend.Endpoint)
	if s.addr.CompareAndSwap(nil, &addr) {
		s.gateway.Listen = addr.String() // a restart takes the same port, also if Envoy chose it
		close(s.ready)
	}
	return nil
}

// drain lets requests under way finish, for as long as the configuration allows, and ends Envoy.
func (s *Supervisor) drain(parent context.Context, c *child) {
	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), s.drainTimeout)
	defer cancel()
	if err := s.admin.drain(ctx); err != nil {
		s.log.Warn("Envoy could not be asked to drain", "error", err)
	}
	active := 0
	for {
		n, err := s.admin.activeRequests(ctx)
		if err == nil && n == 0 {
			break
		}
		active = max(active, n)
		select {
		case <-c.exited:
			return
		case <-ctx.Done():
			s.log.Warn("requests were still under way when the time to drain was over", "requests", active, "waited", s.drainTimeout)
			s.end(c, sigterm)
			return
		case <-time.After(pause):
		}
	}
	s.end(c, sigterm)
}

// end sends a signal and makes sure that Envoy is gone.
func (s *Supervisor) end(c *child, signal os.Signal) {
	if err := c.signal(signal); err != nil {
		s.log.Warn("Envoy could not be ended", "error", err)
	}
	if c.waitFor(termTimeout) {
		return
	}
	s.log.Warn("Envoy did not end in time and is killed", "process", c.process.Pid, "waited", termTimeout)
	if err := c.signal(os.Kill); err != nil {
		s.log.Warn("Envoy could not be killed", "error", err)
	}
	if !c.waitFor(termTimeout) {
		s.log.Error("Envoy is still there after SIGKILL", "process", c.process.Pid)
	}
}

// checkAdminFree refuses to start where another process listens: Envoy takes a socket away from whoever has it.
func (s *Supervisor) checkAdminFree(ctx context.Context) error {
	if s.admin.taken(ctx) {
		return fmt.Errorf("another process, perhaps another Envoy, listens on the admin address %s: stop it, or choose another", s.gateway.Admin)
	}
	return nil
}

func (s *Supervisor) removeAdminSocket() {
	path, ok := s.gateway.Admin.SocketPath()
	if !ok {
		return
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("Envoy's admin socket could not be removed", "error", err)
	}
}
