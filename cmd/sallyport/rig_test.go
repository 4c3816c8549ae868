package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/exchange/kubernetes/kubetest"
	"sallyport/internal/serve"
)

// deadline bounds every wait for something that must happen. It is far longer than anything takes.
const deadline = 60 * time.Second

var (
	root   string // of the repository
	binary string // built once for all tests
)

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	var err error
	if root, err = filepath.Abs("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "sallyport-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in /tmp
	binary = filepath.Join(dir, "sallyport")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, ".") // as `make build` does, whose work is then not done again
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	defer kubetest.StopShared()
	return m.Run()
}

// tool returns a file that `make tools` lays.
func tool(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(root, ".tools/py/bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("run `make tools`: %v", err)
	}
	return path
}

// shortDir is a directory whose path leaves room for the names of unix sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sp-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a leftover in /tmp
	return dir
}

// process is a sallyport that runs beside the test.
type process struct {
	*exec.Cmd
	output *buffer
	ended  chan struct{}
}

// buffer collects output while others look at it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start runs sallyport with args until the test ends.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, args...), output: &buffer{}, ended: make(chan struct{})}
	p.Dir = root // where .tools is
	p.Stdout, p.Stderr = p.output, p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // ProcessState tells
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.end(t, syscall.SIGTERM)
		if t.Failed() {
			t.Logf("output of %v:\n%s", args, p.output)
		}
	})
	return p
}

// end signals the process and waits for its end.
func (p *process) end(t testing.TB, s syscall.Signal) {
	t.Helper()
	_ = p.Process.Signal(s) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(deadline):
		t.Errorf("%v did not end on %v", p.Args[1:], s)
		_ = p.Process.Kill()
		<-p.ended
	}
}

// up runs `sallyport up` on dir and waits until it is ready.
func up(t testing.TB, dir string, flags ...string) (*process, map[string]string) {
	t.Helper()
	p := start(t, append([]string{"up", "--data", dir, "--listen", "127.0.0.1:0"}, flags...)...)
	path := filepath.Join(dir, "env")
	eventually(t, "up is ready", func() error {
		select {
		case <-p.ended:
			t.Fatalf("up ended:\n%s", p.output)
		default:
		}
		if !strings.Contains(p.output.String(), "ready in ") { // an env file may be there, of one that was killed
			return errors.New("not yet")
		}
		return nil
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return p, env
}

// eventually waits until f returns nil.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	const pause = 10 * time.Millisecond
	end := time.Now().Add(deadline)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s: %v", what, deadline, err)
		}
		time.Sleep(pause)
	}
}

// run runs sallyport to its end and returns what it printed.
func run(t testing.TB, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = root
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func mustRun(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, status := run(t, args...)
	if status != 0 {
		t.Fatalf("sallyport %v: status %d: %s", args, status, stderr)
	}
	return strings.TrimSpace(stdout)
}

// client makes a connection a call, so that no call meets a connection that a killed Envoy left.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// call makes one HTTP call. The answer is nil if it was not a JSON object.
func call(method, url, key string, body any, headers ...string) (status int, answer map[string]any, err error) {
	status, text, err := callText(method, url, key, body, headers...)
	_ = json.Unmarshal([]byte(text), &answer) // as said
	return status, answer, err
}

// callText makes one HTTP call.
func callText(method, url, key string, body any, headers ...string) (status int, answer string, err error) {
	var r io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, "", err
		}
		r = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, url, r)
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", err
	}
	return response.StatusCode, string(text), nil
}

// mint exchanges a token.
func mint(t testing.TB, url, token string) string {
	t.Helper()
	status, answer, err := call(http.MethodPost, url+"/v1/auth/kubernetes", "", map[string]string{"token": token})
	if err != nil || status != http.StatusCreated {
		t.Fatalf("exchange: %d %v %v", status, answer, err)
	}
	return answer["key"].(string)
}

// scrape reads the metrics behind a unix socket.
func scrape(t testing.TB, socket string) string {
	t.Helper()
	client := serve.Client("unix:" + socket)
	defer client.CloseIdleConnections()
	r, err := client.Get("http://door/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
