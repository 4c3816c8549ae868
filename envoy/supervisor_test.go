package envoy_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/envoy"
	"sallyport/envoy/envoytest"
	"sallyport/gateway/xds"
)

// small is a gateway whose upstreams need not exist: for tests of the process alone.
func small(t *testing.T) xds.Gateway {
	dir := envoytest.SocketDir(t)
	return xds.Gateway{
		Listen:  "127.0.0.1:0",
		Admin:   xds.Endpoint("unix:" + filepath.Join(dir, "admin.sock")),
		Backend: xds.Backend{Upstream: xds.Upstream{Endpoint: xds.Endpoint("unix:" + filepath.Join(dir, "backend.sock"))}},
		Authz:   xds.Authz{Upstream: xds.Upstream{Endpoint: xds.Endpoint("unix:" + filepath.Join(dir, "authz.sock"))}, Timeout: 3 * time.Second},
	}
}

func TestAKilledEnvoyIsStartedAgainOnTheSamePort(t *testing.T) {
	var log envoytest.Buffer
	var waits []time.Duration // written by Run alone, read after it has returned
	r := newRig(t)
	e := startClocked(t, r, &log, func(d time.Duration) { waits = append(waits, d) })
	addr := e.Supervisor.Addr()
	for range 3 {
		pid := e.Supervisor.PID()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		envoytest.Eventually(t, "another Envoy answers at the same address", func() bool {
			return e.Supervisor.PID() != pid && answers(e.URL)
		})
	}
	if e.Supervisor.Addr() != addr {
		t.Errorf("address = %s, want %s", e.Supervisor.Addr(), addr)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}; !slices.Equal(waits, want) {
		t.Errorf("waits = %v, want %v", waits, want)
	}
	for _, words := range []string{"Envoy died and is started again", "signal: killed", addr.String()} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("the log does not say %q: %s", words, log.String())
		}
	}
}

// startClocked runs an Envoy in front of r's servers, whose back-off is recorded and takes no time.
func startClocked(t *testing.T, r *rig, log *envoytest.Buffer, waited func(time.Duration)) *envoytest.Envoy {
	t.Helper()
	g := small(t)
	g.Backend.Endpoint, g.Authz.Endpoint = r.backend.endpoint, r.authz.endpoint
	supervisor, err := envoy.New(envoy.Config{Gateway: g, Concurrency: 1, Logger: slog.New(slog.NewTextHandler(log, nil)), AccessLog: log})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	supervisor.SetClock(func() time.Time { return now }, func(d time.Duration) <-chan time.Time {
		waited(d)
		passed := make(chan time.Time, 1)
		passed <- now
		return passed
	})
	return envoytest.Run(t, supervisor)
}

func answers(url string) bool {
	response, err := http.Get(url + "/")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func TestTheEndOfTheContextEndsEnvoy(t *testing.T) {
	g := small(t)
	e := envoytest.Start(t, g)
	pid := e.Supervisor.PID()
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	if path, _ := g.Admin.SocketPath(); exists(path) {
		t.Errorf("%s was left behind", path)
	}
	if _, err := net.DialTimeout("tcp", e.Supervisor.Addr().String(), time.Second); err == nil {
		t.Error("something still listens")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestRequestsUnderWayFinish(t *testing.T) {
	r := newRig(t)
	arrived, finish := make(chan struct{}), make(chan struct{})
	r.backend.handle(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		_, _ = w.Write([]byte("finished"))
	})
	got := make(chan answer)
	go func() { got <- r.get(t, "/v1/x") }()
	<-arrived
	stopped := make(chan error)
	go func() { stopped <- r.Stop() }()
	select {
	case err := <-stopped:
		t.Fatalf("Envoy ended with a request under way: %v", err)
	case <-time.After(300 * time.Millisecond): // long enough for an Envoy that does not wait to be gone
	}
	close(finish)
	if a := <-got; a.status != http.StatusOK || a.body != "finished" {
		t.Errorf("answer = %+v", a)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestADrainIsBounded(t *testing.T) {
	r := newRig(t)
	r.backend.handle(func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	g := small(t)
	g.Backend.Endpoint, g.Authz.Endpoint = r.backend.endpoint, r.authz.endpoint
	e := envoytest.Start(t, g, func(c *envoy.Config) { c.DrainTimeout = 500 * time.Millisecond })
	before := r.backend.count()
	go func() {
		if response, err := http.Get(e.URL + "/stream"); err == nil {
			_ = response.Body.Close()
		}
	}()
	envoytest.Eventually(t, "the stream is open", func() bool { return r.backend.count() > before })
	began := time.Now()
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestAFirstStartThatFailsIsAnError(t *testing.T) {
	busy := envoytest.Start(t, small(t))
	for _, tt := range []struct {
		name   string
		change func(*envoy.Config)
		want   string
	}{
		{"the port is taken by another Envoy", func(c *envoy.Config) { c.Gateway.Listen = busy.Supervisor.Addr().String() }, "stop that process, or choose another address"},
		{"the admin socket is another Envoy's", func(c *envoy.Config) { c.Gateway.Admin = busy.Admin }, "perhaps another Envoy, listens on the admin address"},
		{"the admin socket's directory is missing", func(c *envoy.Config) { c.Gateway.Admin = "unix:/nowhere/at/all/admin.sock" }, "make the directory"},
		{"the binary is no Envoy", func(c *envoy.Config) { c.Binary = "/bin/false" }, "envoy did not start"},
		{"the binary is missing", func(c *envoy.Config) { c.Binary = "/nowhere/envoy" }, "no such file"},
		{"Envoy is not ready in time", func(c *envoy.Config) { c.ReadyTimeout = time.Nanosecond }, "not ready within"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := envoy.Config{Gateway: small(t), Logger: slog.New(slog.DiscardHandler)}
			tt.change(&config)
			supervisor, err := envoy.New(config)
			if err != nil {
				t.Fatal(err)
			}
			err = supervisor.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	if err := busy.Stop(); err != nil { // it was not disturbed
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*envoy.Config)
		want   string
	}{
		{"an invalid gateway", func(c *envoy.Config) { c.Gateway.Listen = "nonsense" }, "listen"},
		{"a socket path that is too long", func(c *envoy.Config) { c.Gateway.Admin = xds.Endpoint("unix:/" + strings.Repeat("x", 107)) }, "shorter directory"},
		{"negative threads", func(c *envoy.Config) { c.Concurrency = -1 }, "at least 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := envoy.Config{Gateway: small(t)}
			tt.change(&config)
			if _, err := envoy.New(config); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
}
