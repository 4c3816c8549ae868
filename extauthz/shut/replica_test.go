package shut_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/envoy/envoytest"
	"sallyport/extauthz"
	"sallyport/extauthz/checkserver"
	"sallyport/extauthz/httpcheck"
	"sallyport/gateway"
	"sallyport/gateway/xds"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// clock stands still until a test moves it, or lets it run; one that runs is not moved any more.
type clock struct {
	mu      sync.Mutex
	at      time.Time
	running time.Time // since when; zero: it stands still
}

// newClock stands at a whole second, as the times in a key do.
func newClock() *clock { return &clock{at: time.Now().UTC().Truncate(time.Second)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running.IsZero() {
		return c.at
	}
	return c.at.Add(time.Since(c.running))
}

func (c *clock) advance(d time.Duration) { c.set(c.Now().Add(d)) }

func (c *clock) set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = to
}

func (c *clock) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = time.Now()
}

// watchedStore is a real key store of which a test counts the reads, and which it can hold up.
type watchedStore struct {
	keystore.Store
	keyReads, setReads atomic.Int64
	stall              atomic.Pointer[chan struct{}] // reads of keys wait until it is closed
}

func (s *watchedStore) Introspect(ctx context.Context, id string) (keystore.Introspection, error) {
	s.keyReads.Add(1)
	if stall := s.stall.Load(); stall != nil {
		select {
		case <-*stall:
		case <-ctx.Done():
			return keystore.Introspection{}, ctx.Err()
		}
	}
	return s.Store.Introspect(ctx, id)
}

func (s *watchedStore) VerificationKeys(ctx context.Context) ([]key.VerificationKey, error) {
	s.setReads.Add(1)
	return s.Store.VerificationKeys(ctx)
}

// replica is one inner door, wired as `sallyport extauthz` wires it.
type replica struct {
	*clock
	store   *watchedStore
	revoked *extauthz.RevocationCache
	door    *extauthz.Authorizer
	service *checkserver.Service
	http    *httpcheck.Handler
	log     envoytest.Buffer

	endpoint xds.Endpoint // where Envoy asks
	stop     func()
}

const ttl = extauthz.DefaultRevocationTTL

// newReplica makes a door over a store. It listens nowhere yet.
func newReplica(t *testing.T, store keystore.Store, at *clock, names gateway.Headers) *replica {
	t.Helper()
	r := &replica{clock: at, store: &watchedStore{Store: store}, stop: func() {}}
	var err error
	r.revoked, err = extauthz.NewRevocationCache(r.store, extauthz.RevocationOptions{TTL: ttl, Size: extauthz.DefaultRevocationSize, Now: r.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.revoked.Close)
	verifier := key.NewVerifier(key.NewKeySet(r.store, r.Now), key.DefaultIssuer, key.DefaultAudience, r.Now)
	verified, err := extauthz.NewVerifiedCache(verifier, extauthz.DefaultVerifiedSize, r.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(verified.Close)
	log := slog.New(slog.NewJSONHandler(&r.log, nil))
	decisions, err := extauthz.NewDecisionLog(log, extauthz.LogRates{Allows: 1000, Denials: 1000}, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.door = extauthz.NewAuthorizer(verified, r.revoked, r.Now)
	r.service, r.http = checkserver.NewService(r.door, names, decisions), httpcheck.New(r.door, names, decisions)
	r.endpoint = xds.Endpoint("unix:" + filepath.Join(envoytest.SocketDir(t), "door.sock"))
	return r
}

// serve answers Envoy's gRPC checks until stop, or the end of the test.
func (r *replica) serve(t *testing.T) {
	t.Helper()
	l := listen(t, r.endpoint)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.service.Serve(ctx, l, nil); err != nil {
			t.Errorf("the door: %v", err)
		}
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(r.stop)
}

// serveHTTP answers checks over HTTP until the end of the test.
func (r *replica) serveHTTP(t *testing.T) {
	t.Helper()
	serveHTTP(t, listen(t, r.endpoint), r.http)
}

func listen(t *testing.T, at xds.Endpoint) net.Listener {
	t.Helper()
	path, _ := at.SocketPath()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serveHTTP serves until the test ends.
func serveHTTP(t *testing.T, l net.Listener, h http.Handler) {
	t.Helper()
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // it ends as it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close() // listeners and connections, in a test
		<-done
	})
}

// sqlite opens a new key store.
func sqlite(t *testing.T, now func() time.Time) keystore.Store {
	t.Helper()
	s, err := keystore.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "keys.db"), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}
