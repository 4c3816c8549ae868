package main_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// recorder is a backend that writes down what it receives.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []http.Header
}

func record(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, req.Header.Clone())
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) received() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func findNginx(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("nginx"); err == nil {
		return path
	}
	path := filepath.Join(root, ".tools/nginx/usr/sbin/nginx")
	if _, err := os.Stat(path); err != nil {
		t.Skip("nginx is not installed, and `make tools` could not fetch it (it takes Debian's package)")
	}
	return path
}

// startNginx runs nginx with the snippet that we ship, its two addresses set, and returns its URL.
func startNginx(t *testing.T, checkSocket, backend string) string {
	t.Helper()
	nginx := findNginx(t)
	snippet, err := os.ReadFile(filepath.Join(root, "deploy/nginx/sallyport.conf"))
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	socket := filepath.Join(dir, "nginx.sock")
	text := strings.NewReplacer("/run/sallyport/check.sock", checkSocket, "127.0.0.1:9000", strings.TrimPrefix(backend, "http://")).Replace(string(snippet))
	config := "daemon off; master_process off; pid " + dir + "/pid; error_log stderr notice;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	config += "server { listen unix:" + socket + ";\n" + text + "}\n}\n"
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	output := &buffer{}
	cmd := exec.Command(nginx, "-p", dir, "-c", file)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is ended below
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("nginx:\n%s", output)
		}
	})
	eventually(t, "nginx is ready", func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return bridge(t, socket)
}

// bridge makes a unix socket reachable at a URL, since HTTP clients want one.
func bridge(t *testing.T, socket string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // which ends the loop
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go pipe(conn, socket)
		}
	}()
	return "http://" + l.Addr().String()
}

// pipe copies both ways until either side is done.
func pipe(client net.Conn, socket string) {
	defer client.Close() //nolint:errcheck // the other side has seen the end
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // the other side has seen the end
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // the end of either is the end
			done <- struct{}{}
		}()
	}
	<-done
}

func TestNginxAsksTheSameDoor(t *testing.T) {
	d := deploy(t)
	backend := record(t)
	url := startNginx(t, filepath.Join(d.dir, "check.sock"), backend.URL)
	key := mint(t, d.url, mustRun(t, "dev", "token", "--data", d.dir, "--pod", "p", "--claim", "c"))

	status, _, err := callText(http.MethodGet, url+"/any?secret=1", key, nil, "x-sallyport-tenant", "agents", "Cookie", "theirs")
	if err != nil || status != http.StatusOK {
		t.Fatalf("with a key: %d %v", status, err)
	}
	got := backend.received()[0]
	if got.Get("X-Sallyport-Namespace") != "agents:c" || got.Get("X-Sallyport-Session") != "p" || got.Get("Authorization") != "" || got.Get("Cookie") != "theirs" {
		t.Errorf("the backend received %v", got)
	}
	for name, c := range map[string]struct {
		key     string
		headers []string
		status  int
	}{
		"without a key":         {"", nil, 401},
		"with garbage":          {"x", nil, 401},
		"with forged headers":   {"", []string{"x-sallyport-namespace", "agents:c"}, 401},
		"contradicting its key": {key, []string{"x-sallyport-namespace", "agents:other"}, 403},
	} {
		if status, _, err := callText(http.MethodGet, url+"/any", c.key, nil, c.headers...); err != nil || status != c.status {
			t.Errorf("%s: %d %v", name, status, err)
		}
	}
	d.services["extauthz"].end(t, syscall.SIGKILL)
	if status, _, err := callText(http.MethodGet, url+"/any", key, nil); err != nil || status != http.StatusInternalServerError {
		t.Errorf("with the door gone: %d %v", status, err)
	}
	if n := len(backend.received()); n != 1 {
		t.Errorf("the backend received %d requests", n)
	}
}
