package main_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sallyport/envoy/envoytest"
	"sallyport/gateway/xds"
)

// deployment is the services as they run in a cluster: each by itself, with the key store in a file that exchange and
// extauthz share, behind an Envoy with the configuration that `up` would use.
type deployment struct {
	dir      string
	services map[string]*process
	args     map[string][]string
	url      string
}

func deploy(t *testing.T, change ...func(*xds.Gateway)) *deployment {
	t.Helper()
	dir := shortDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	keystore := "--keystore=sqlite:" + at("keys.db")
	d := &deployment{dir: dir, services: map[string]*process{}, args: map[string][]string{
		"exchange": {"exchange", "--listen=unix:" + at("exchange.sock"), keystore, "--metrics-listen=unix:" + at("exchange-metrics.sock"), "--dev-cluster=" + dir, "--admin-key-file=" + at("admin.key")},
		"extauthz": {"extauthz", "--listen=unix:" + at("extauthz.sock"), "--http-listen=unix:" + at("check.sock"), "--admin-listen=unix:" + at("extauthz-admin.sock"), "--metrics-listen=unix:" + at("extauthz-metrics.sock"), keystore},
		"memory":   {"memory", "--listen=unix:" + at("memory.sock"), "--store=sqlite:" + at("memory.db")},
	}}
	upstream := func(name string) xds.Upstream {
		return xds.Upstream{Endpoint: xds.Endpoint("unix:" + at(name+".sock"))}
	}
	for name := range d.args {
		d.start(t, name)
	}
	g := xds.Gateway{
		Authz:    xds.Authz{Upstream: upstream("extauthz")},
		Exchange: &xds.Exchange{Upstream: upstream("exchange")},
		Backend: xds.Backend{Upstream: upstream("memory"), Paths: []xds.Path{
			{Exact: "/healthz", Open: true}, {Exact: "/mcp", Stream: true}, {Prefix: "/v1/"},
		}},
	}
	for _, f := range change {
		f(&g)
	}
	d.url = envoytest.Start(t, g).URL
	return d
}

// start starts a service, as a kubelet does again when it ended, and waits until it says that it is ready.
func (d *deployment) start(t *testing.T, name string) {
	t.Helper()
	p := start(t, d.args[name]...)
	d.services[name] = p
	eventually(t, name+" is ready", func() error {
		select {
		case <-p.ended:
			t.Fatalf("%s ended:\n%s", name, p.output)
		default:
		}
		if !strings.Contains(p.output.String(), name+" is ready") {
			return errors.New("not yet")
		}
		return nil
	})
}

// loop is a client that writes and reads as fast as it is answered, and a stranger beside it who has no key.
type loop struct {
	url, token string

	mu           sync.Mutex
	key          string
	next         int
	acknowledged []string
	failed       int
	stranger     []string // answers to the stranger that let it through
	probed       int
	stop         chan struct{}
	done         sync.WaitGroup
}

func startLoop(url, token, key string) *loop {
	l := &loop{url: url, token: token, key: key, stop: make(chan struct{})}
	l.done.Go(l.write)
	l.done.Go(l.trespass)
	return l
}

func (l *loop) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// write remembers one value after the other. A value counts as written when the answer says so.
func (l *loop) write() {
	for !l.stopped() {
		l.mu.Lock()
		l.next++
		value, key := fmt.Sprintf("tool-%d", l.next), l.key
		l.mu.Unlock()
		status, _, err := call(http.MethodPost, l.url+"/v1/remember", key, map[string]string{"subject": "user", "predicate": "uses_technology", "value": value})
		l.mu.Lock()
		switch {
		case err == nil && status == http.StatusOK:
			l.acknowledged = append(l.acknowledged, value)
		default:
			l.failed++
		}
		l.mu.Unlock()
		if err == nil && status == http.StatusUnauthorized {
			l.exchange()
		}
	}
}

// exchange does what the real client does on a 401.
func (l *loop) exchange() {
	status, answer, err := call(http.MethodPost, l.url+"/v1/auth/kubernetes", "", map[string]string{"token": l.token})
	if err != nil || status != http.StatusCreated {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key = answer["key"].(string)
}

// trespass asks without a key, with a false one, and with forged headers.
func (l *loop) trespass() {
	forged := []string{"x-sallyport-namespace", "agents:c", "x-sallyport-tenant", "agents", "x-sallyport-agent", "c"}
	for i := 0; !l.stopped(); i++ {
		key := ""
		if i%2 == 1 {
			key = "eyJhbGciOiJub25lIn0.e30."
		}
		status, answer, err := call(http.MethodPost, l.url+"/v1/recall", key, map[string]string{"subject": "user", "predicate": "uses_technology"}, forged...)
		l.mu.Lock()
		l.probed++
		if err == nil && status < http.StatusBadRequest {
			l.stranger = append(l.stranger, fmt.Sprintf("%d %v", status, answer))
		}
		l.mu.Unlock()
	}
}

// progress waits until n more writes are acknowledged than now.
func (l *loop) progress(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acknowledged)
	}
	want := count() + n
	eventually(t, "the loop goes on", func() error {
		if got := count(); got < want {
			return fmt.Errorf("%d of %d writes", got, want)
		}
		return nil
	})
}

// finish ends the loop and checks what must hold whatever was killed.
func (l *loop) finish(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.done.Wait()
	if len(l.stranger) > 0 {
		t.Errorf("a stranger was let through: %v", l.stranger)
	}
	if l.probed == 0 {
		t.Error("the stranger never asked")
	}
	status, body, err := callText(http.MethodPost, l.url+"/v1/recall", l.key, map[string]any{"subject": "user", "predicate": "uses_technology", "limit": 1000})
	if err != nil || status != http.StatusOK {
		t.Fatalf("recall: %d %v", status, err)
	}
	status, history, err := callText(http.MethodPost, l.url+"/v1/history", l.key, map[string]any{"subject": "user", "predicate": "uses_technology"})
	if err != nil || status != http.StatusOK {
		t.Fatalf("history: %d %v", status, err)
	}
	const most = 1000 // what one recall returns
	for _, value := range l.acknowledged {
		if n := strings.Count(history, `"`+value+`"`); n != 1 {
			t.Errorf("%s was acknowledged and is %d times in the history", value, n)
		}
		if len(l.acknowledged)+l.failed < most && !strings.Contains(body, `"`+value+`"`) {
			t.Errorf("%s was acknowledged and is not recalled", value)
		}
	}
	t.Logf("%d writes acknowledged, %d calls failed, %d trespasses refused", len(l.acknowledged), l.failed, l.probed)
}

func TestEnvoyIsKilledUnderUpDuringALoopOfCalls(t *testing.T) {
	dir := shortDir(t)
	p, env := up(t, dir)
	token := mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c")
	l := startLoop(env["RECALL_URL"], token, mint(t, env["RECALL_URL"], token))
	for range 3 {
		l.progress(t, 10)
		envoys := children(t, p.Process.Pid)
		if len(envoys) != 1 {
			t.Fatalf("children: %v", envoys)
		}
		if err := syscall.Kill(envoys[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "Envoy is gone", func() error { return gone(envoys[0]) })
	}
	l.progress(t, 10)
	l.finish(t)
	if !strings.Contains(p.output.String(), "Envoy") || strings.Count(p.output.String(), "level=WARN")+strings.Count(p.output.String(), "level=ERROR") == 0 {
		t.Errorf("no line says that Envoy died:\n%s", p.output)
	}
}

func TestEachServiceIsKilledDuringALoopOfCalls(t *testing.T) {
	for _, name := range []string{"exchange", "extauthz", "memory"} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			token := mustRun(t, "dev", "token", "--data", d.dir, "--pod", "p", "--claim", "c")
			l := startLoop(d.url, token, mint(t, d.url, token))
			for range 3 {
				l.progress(t, 10)
				d.services[name].end(t, syscall.SIGKILL)
				if _, stderr, status := run(t, "health", name, "unix:"+filepath.Join(d.dir, name+".sock")); status == 0 || !strings.Contains(stderr, "not healthy") {
					t.Errorf("health of a killed service: %d %s", status, stderr)
				}
				if name != "exchange" {
					continueUntilFailure(t, l)
				}
				d.start(t, name)
			}
			l.progress(t, 10)
			mint(t, d.url, token) // the outer door works too
			if out := mustRun(t, "health", name, "unix:"+filepath.Join(d.dir, name+".sock")); out != "ok" {
				t.Errorf("health says %q", out)
			}
			l.finish(t)
			if err := os.Remove(filepath.Join(d.dir, "admin.key")); err != nil {
				t.Errorf("the exchange made no admin key: %v", err)
			}
		})
	}
}

// continueUntilFailure waits until the loop has met the outage.
func continueUntilFailure(t *testing.T, l *loop) {
	t.Helper()
	failures := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.failed
	}
	before := failures()
	eventually(t, "the loop meets the outage", func() error {
		if failures() == before {
			return errors.New("not yet")
		}
		return nil
	})
}
