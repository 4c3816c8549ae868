package difftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

// system is a server that is measured, in a process of its own and over HTTP as its clients reach it.
type system struct {
	name       string
	url        string
	pid        int
	header     func(n int) http.Header // says which namespace, for the nth call
	size       int                     // beliefs in the namespace
	namespaces int
	client     *http.Client
	calls      atomic.Int64
}

func (s *system) String() string {
	if s.namespaces > 1 {
		return fmt.Sprintf("%s, %d namespaces", s.name, s.namespaces)
	}
	return fmt.Sprintf("%s, %d beliefs", s.name, s.size)
}

// next counts calls, so that none is made twice.
func (s *system) next() int { return int(s.calls.Add(1)) }

func newSystem(name, url string, pid, size int, header func(int) http.Header) *system {
	return &system{
		name: name, url: url, pid: pid, size: size, namespaces: 1, header: header,
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: manyClients}},
	}
}

func bearer(key string) func(int) http.Header {
	return func(int) http.Header {
		return http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}}
	}
}

func trusted(namespace string) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	for _, h := range gateway.DefaultHeaders().Values(gateway.Identity{Namespace: namespace}) {
		header.Set(h.Name, h.Value)
	}
	return header
}

// startSystems starts all that is measured. What takes a namespace of many beliefs, or many namespaces, is written to the
// stores before their servers start.
func startSystems(t *testing.T) []*system {
	t.Helper()
	reference := &peer{}
	reference.start(t, "-typed", "-open")
	systems := []*system{
		newSystem(theReference, reference.url, 0, small, bearer(key(1))),
		newSystem(theReference, reference.url, 0, tiny, bearer(key(2))),
		startDoor(t),
	}
	dir := t.TempDir()
	file, address := filepath.Join(dir, "memory.db"), pgtest.Start(t, "fsync=on").Database(t)
	lite, err := sqlitestore.Open(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := pgstore.Open(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, address string
		store         memory.Store
	}{{onSQLite, "sqlite:" + file, lite}, {onPostgreSQL, address, postgres}} {
		fillStore(t, x.store, "size:large", large)
		fillNamespaces(t, x.store)
		if err := x.store.Close(); err != nil {
			t.Fatal(err)
		}
		listen := free(t)
		pid := sallyport(t, listen, "memory", "serve", "--log-level", "error", "--listen", listen, "--store", x.address)
		url := "http://" + listen
		wide := newSystem(x.name, url, pid, small, func(n int) http.Header { return trusted(fmt.Sprintf("many:%d", n%many)) })
		wide.namespaces = many
		systems = append(systems, wide,
			newSystem(x.name, url, pid, small, func(int) http.Header { return trusted("size:small") }),
			newSystem(x.name, url, pid, large, func(int) http.Header { return trusted("size:large") }))
	}
	return systems
}

// startDoor starts everything, and exchanges a pod's token for a key.
func startDoor(t *testing.T) *system {
	t.Helper()
	dir, err := os.MkdirTemp("", "door") // t.TempDir() is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listen := free(t)
	pid := sallyport(t, listen, "up", "--data", dir, "--listen", listen)
	var text []byte
	eventually(t, "a pod's token", func() error {
		token := exec.Command(binary(t), "dev", "token", "--data", dir, "--pod", "p", "--claim", "c")
		token.Dir = root(t)
		var err error
		text, err = token.Output()
		return err
	})
	body, err := json.Marshal(object{"token": strings.TrimSpace(string(text))})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Key string }
	eventually(t, "a key", func() error {
		resp, err := http.Post("http://"+listen+"/v1/auth/kubernetes", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // it is read
		if resp.StatusCode != http.StatusCreated {
			return errors.New(resp.Status)
		}
		return json.NewDecoder(resp.Body).Decode(&got)
	})
	return newSystem(wholeDoor, "http://"+listen, pid, tiny, bearer(got.Key))
}

func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(root(t), "bin", "sallyport")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run `make build`", err)
	}
	return path
}

// sallyport starts the command, which ends with the test, and waits until something listens.
func sallyport(t *testing.T, listen string, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Dir = root(t)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		if err := cmd.Wait(); err != nil {
			t.Logf("sallyport %s: %v\n%s", args[0], err, said.String())
		}
	})
	eventually(t, "sallyport "+args[0], func() error {
		c, err := net.DialTimeout("tcp", listen, time.Second)
		if err == nil {
			_ = c.Close() // it was only tried
		}
		return err
	})
	return cmd.Process.Pid
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// free returns an address that nobody listens at just now.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only tried
	return l.Addr().String()
}

// fillStore writes many beliefs at once, past HTTP.
func fillStore(t *testing.T, store memory.Store, namespace string, size int) {
	t.Helper()
	var lines strings.Builder
	for n := range size {
		subject, predicate, value := statement(n)
		fmt.Fprintf(&lines, `{"event":{"id":"m-%024d","kind":"fact","subject":%q,"predicate":%q,"value":%q,"confidence":1,"source":"user_stated","observed_at":%q}}`+"\n",
			n, subject, predicate, value, time.Date(2024, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339))
	}
	if _, err := memory.Import(context.Background(), store, namespace, strings.NewReader(lines.String())); err != nil {
		t.Fatal(err)
	}
}

// fillNamespaces states one thing in each of many namespaces.
func fillNamespaces(t *testing.T, store memory.Store) {
	t.Helper()
	words := belief.Open()
	service := memory.NewService(store, memory.Options{Vocabulary: &words})
	var wg sync.WaitGroup
	for worker := range manyClients {
		wg.Go(func() {
			for n := worker; n < many; n += manyClients {
				subject, predicate, value := statement(0)
				raw, err := json.Marshal(value)
				if err == nil {
					_, err = service.Remember(context.Background(), memory.Caller{Namespace: fmt.Sprintf("many:%d", n)},
						memory.RememberArgs{Subject: &subject, Predicate: &predicate, Value: raw})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// fillSystem writes what is not there yet: the beliefs of a small one, and an agent with 200 turns for each client.
func fillSystem(t *testing.T, s *system) {
	t.Helper()
	if s.namespaces > 1 {
		return
	}
	for n := range s.size {
		if s.size == large {
			break
		}
		if _, err := s.post(n, "/v1/remember", rememberBody(n)); err != nil {
			t.Fatal(err)
		}
	}
	if !s.measured(resume) {
		return
	}
	for client := range manyClients {
		must := func(name string, arguments object) {
			t.Helper()
			arguments["agent_id"] = fmt.Sprintf("agent%d", client)
			if _, err := s.tool(0, name, arguments); err != nil {
				t.Fatal(err)
			}
		}
		must("agent_resume", object{})
		for turn := range agentTurns {
			must("record_turn", object{"role": "user", "content": fmt.Sprintf("what was said in turn %d of this agent", turn)})
		}
		must("agent_release", object{})
	}
}
