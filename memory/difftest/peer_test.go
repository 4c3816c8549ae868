package difftest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/memory"
	"sallyport/memory/api"
	"sallyport/memory/belief"
)

// server answers an operation for one namespace.
type server interface {
	call(t *testing.T, namespace int, s step) answer
}

// answer is a status and a JSON body.
type answer struct {
	status int
	body   any
}

func newAnswer(t *testing.T, s step, status int, raw []byte) answer {
	t.Helper()
	a := answer{status: status}
	if err := json.Unmarshal(raw, &a.body); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if s.Tool && status == http.StatusOK {
		return ofTool(t, raw)
	}
	return a
}

// refusedByTool is the status of a tool's answer that says isError.
const refusedByTool = -1

// ofTool unwraps what a tool answered. One that refuses does so in a sentence.
func ofTool(t *testing.T, raw []byte) (a answer) {
	t.Helper()
	var rpc struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal(raw, &rpc); err != nil || len(rpc.Result.Content) != 1 {
		t.Fatalf("no tool's answer: %v %s", err, raw)
	}
	text := rpc.Result.Content[0].Text
	if rpc.Result.IsError {
		return answer{status: refusedByTool, body: text}
	}
	a.status = http.StatusOK
	if err := json.Unmarshal([]byte(text), &a.body); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return a
}

// own is Sallyport's handler, reached as the gateway reaches it.
type own struct{ handler http.Handler }

func newOwn(store memory.Store) *own { return serving(store, belief.Open(), api.Typed(true)) }

func serving(store memory.Store, words belief.Vocabulary, surface api.Surface) *own {
	service := memory.NewService(store, memory.Options{Vocabulary: &words})
	return &own{api.NewHandler(service, surface, gateway.DefaultHeaders(), nil)}
}

func (o *own) call(t *testing.T, namespace int, s step) answer {
	t.Helper()
	path, body := s.request(t)
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	for _, h := range gateway.DefaultHeaders().Values(gateway.Identity{Namespace: name(namespace), Session: s.Pod}) {
		r.Header.Set(h.Name, h.Value)
	}
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	return newAnswer(t, s, w.Code, w.Body.Bytes())
}

// request is the path and the body of a step.
func (s step) request(t *testing.T) (path string, body []byte) {
	t.Helper()
	if !s.Tool {
		return "/v1/" + s.Op, s.Body
	}
	body, err := json.Marshal(object{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": s.Op, "arguments": s.Body},
	})
	if err != nil {
		t.Fatal(err)
	}
	return "/mcp", body
}

func name(namespace int) string { return fmt.Sprintf("diff:%d", namespace) }

// maxNamespaces is how many namespaces the peer has keys for: one for each sequence, and for each try to shorten one.
const maxNamespaces = 20000

// peer is a running `recall serve` with a database of its own. It ends with the test.
type peer struct {
	url  string
	stop func()
	pods map[string]string // the keys made for pods, by namespace and pod
}

// start starts the reference with an empty database.
func (p *peer) start(t *testing.T, flags ...string) {
	t.Helper()
	binary := filepath.Join(root(t), ".tools", "py", "bin", "recall")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v: run `make tools`", err)
	}
	dir := t.TempDir()
	var keys strings.Builder
	for i := range maxNamespaces {
		fmt.Fprintf(&keys, "%s %s\n", key(i), name(i))
	}
	keysFile := filepath.Join(dir, "keys")
	if err := os.WriteFile(keysFile, []byte(keys.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	adminFile := filepath.Join(dir, "admin")
	if err := os.WriteFile(adminFile, []byte(adminKey), 0o600); err != nil {
		t.Fatal(err)
	}
	p.pods = map[string]string{}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(binary, append([]string{
		"serve", "-backend", "local", "-url", data, "-listen", "127.0.0.1:0", "-keys-file", keysFile, "-bootstrap-key-file", adminFile,
	}, flags...)...)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		_ = cmd.Wait()                          // having been told to end is no failure
		endDatabase(t, data)
	})
	t.Cleanup(p.stop)
	p.url = listening(t, out)
}

func key(namespace int) string { return fmt.Sprintf("key-%d", namespace) }

// adminKey makes the keys of pods.
var adminKey = "rcl_0123456789abcdef_" + strings.Repeat("0123456789abcdef", 4)

// keyOf is the key of a pod in a namespace. The reference knows pods only by keys that an admin made.
func (p *peer) keyOf(t *testing.T, namespace int, pod string) string {
	t.Helper()
	if pod == "" {
		return key(namespace)
	}
	id := fmt.Sprintf("%d %s", namespace, pod)
	if p.pods[id] == "" {
		body := fmt.Appendf(nil, `{"namespace":%q,"session":%q}`, name(namespace), pod)
		status, raw := p.post(t, "/v1/keys", adminKey, body)
		var made struct{ Key string }
		if err := json.Unmarshal(raw, &made); err != nil || status != http.StatusCreated {
			t.Fatalf("no key is made: %d %v %s", status, err, raw)
		}
		p.pods[id] = made.Key
	}
	return p.pods[id]
}

// listening reads the log until it says where the server listens; the rest is read and dropped.
func listening(t *testing.T, log io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if _, rest, ok := strings.Cut(lines.Text(), "listening on "); ok {
				address, _, _ := strings.Cut(rest, ": ")
				found <- "http://" + address
			}
		}
		close(found)
	}()
	select {
	case url, ok := <-found:
		if !ok {
			t.Fatal("recall serve ended before it listened")
		}
		return url
	case <-time.After(time.Minute):
		t.Fatal("recall serve does not listen")
	}
	return ""
}

// endDatabase ends the database that the peer started and left running, which noted its process in its directory.
func endDatabase(t *testing.T, data string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(data, "runtime.json"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var noted struct{ PID int }
	if err != nil || json.Unmarshal(raw, &noted) != nil || noted.PID <= 1 {
		t.Fatalf("cannot tell the process of the peer's database: %v %s", err, raw)
	}
	running := func() bool {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", noted.PID))
		return err == nil && bytes.Contains(args, []byte(data))
	}
	for deadline := time.Now().Add(20 * time.Second); running(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the peer's database does not end")
		}
		_ = syscall.Kill(noted.PID, syscall.SIGTERM) // it may have ended in between
	}
}

func (p *peer) call(t *testing.T, namespace int, s step) answer {
	t.Helper()
	path, body := s.request(t)
	status, raw := p.post(t, path, p.keyOf(t, namespace, s.Pod), body)
	return newAnswer(t, s, status, raw)
}

func (p *peer) post(t *testing.T, path, key string, body []byte) (status int, answer []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, raw
}

// root is the module's root.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}
