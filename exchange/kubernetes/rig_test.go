package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"sallyport/exchange"
	"sallyport/exchange/httpapi"
	"sallyport/exchange/kubernetes"
	"sallyport/exchange/kubernetes/kubetest"
	"sallyport/exchange/kubernetes/watch"
	"sallyport/exchange/sandbox"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

const audience = "recall"

// rig is an exchange on the real API, with all of its parts, and one namespace of the cluster.
type rig struct {
	*kubetest.Namespace
	t         testing.TB
	cluster   *kubetest.Cluster
	userAgent string
	client    *kubernetes.Client
	dir       string // of the store
	store     keystore.Store
	watch     *watch.Watch // nil without one
	stopWatch func()
	url       string
	log       *log
	inside    atomic.Int64 // requests that are being answered
}

// setup is what a test changes about a rig.
type setup struct {
	options sandbox.Options
	client  kubernetes.Options
	config  *rest.Config       // nil: the exchange's own
	leave   []kubetest.Without // of the exchange's permissions
	silent  bool               // no permissions in the namespace
	watch   bool
	offline bool
}

// watching makes tests that do not care watch, too: see TestTheSameHoldsWithWatches.
var watching bool

func defaults() setup {
	return setup{
		watch:   watching,
		options: sandbox.Options{Now: time.Now},
		client:  kubernetes.Options{QPS: kubernetes.DefaultQPS, Burst: kubernetes.DefaultBurst, CallTimeout: kubernetes.DefaultCallTimeout},
	}
}

func newRig(t testing.TB, s setup) *rig {
	t.Helper()
	cluster := kubetest.Shared(t)
	r := &rig{Namespace: cluster.Namespace(t), t: t, cluster: cluster, userAgent: userAgent(t), dir: t.TempDir(), log: &log{}}
	if !s.silent {
		r.Allow(s.leave...)
	}
	if s.config == nil {
		s.config = cluster.ExchangeConfig(t, r.userAgent)
	}
	client, err := kubernetes.NewClient(s.config, s.client)
	if err != nil {
		t.Fatal(err)
	}
	r.client, r.store = client, r.openStore()
	r.serve(client, s)
	return r
}

// openStore opens the rig's key store, as one more process would.
func (r *rig) openStore() keystore.Store {
	r.t.Helper()
	store, err := keystore.Open(context.Background(), "sqlite:"+filepath.Join(r.dir, "keys.db"), time.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = store.Close() })
	return store
}

// startWatch runs a watch on the rig's namespace until stop is called or the test ends.
func (r *rig) startWatch(client *kubernetes.Client, store keystore.Store, rules sandbox.Options, log io.Writer) (w *watch.Watch, stop func()) {
	w = watch.New(watch.Options{
		Client: client, Store: store, Rules: rules, Namespaces: []string{r.Name}, AskAgain: time.Second, Now: time.Now, Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { w.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	r.t.Cleanup(stop)
	return w, stop
}

// serve puts the exchange together as the binary does.
func (r *rig) serve(client *kubernetes.Client, s setup) {
	r.t.Helper()
	const issuer, keyAudience = "sallyport", "memory"
	ctx := context.Background()
	signer, err := key.NewSigner(ctx, r.store, key.SignerOptions{
		Issuer: issuer, Audience: keyAudience, MaxTTL: exchange.DefaultKeyTTL, Lifetime: time.Hour, Now: time.Now,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	authenticator := &exchange.PodAuthenticator{
		Reviewer: kubernetes.NewReviewer(client, audience, time.Now), Cluster: kubernetes.Cluster{Client: client},
		Options: s.options, Timeout: kubernetes.DefaultTimeout,
	}
	if s.offline {
		authenticator.Reviewer = kubernetes.NewOffline(client, audience, time.Now)
	}
	var minted func(keystore.Record)
	if s.watch {
		r.watch, r.stopWatch = r.startWatch(client, r.store, s.options, r.log)
		authenticator.Watched, minted = r.watch.Cluster(), r.watch.Minted
		if !s.silent && len(s.leave) == 0 {
			r.eventually("the namespace is watched", func() bool { return r.watch.Warm(r.Name) })
		}
	}
	logger := slog.New(slog.NewJSONHandler(r.log, nil))
	x := exchange.New(exchange.Options{
		Authenticator: authenticator,
		Store:         r.store, Signer: signer, Verifier: key.NewVerifier(key.NewKeySet(r.store, time.Now), issuer, keyAudience, time.Now),
		KeyTTL: exchange.DefaultKeyTTL, Now: time.Now, Log: logger, Minted: minted,
	})
	handler := httpapi.New(x, r.store.Ping, logger)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.inside.Add(1)
		defer r.inside.Add(-1)
		handler.ServeHTTP(w, request)
	}))
	r.t.Cleanup(server.Close)
	r.url = server.URL
}

// answer is what a client of the exchange sees.
type answer struct {
	status int
	header http.Header
	text   string
	body   struct {
		ID        string    `json:"id"`
		Key       string    `json:"key"`
		Namespace string    `json:"namespace"`
		Agent     string    `json:"agent"`
		Session   string    `json:"session"`
		ExpiresAt time.Time `json:"expires_at"`
		Sandbox   *keystore.Regime
		Error     struct{ Code, Message string }
	}
}

func (r *rig) send(method, path, body string, header ...string) answer {
	r.t.Helper()
	a, err := r.sendBy(http.DefaultClient, method, path, body, header...)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) sendBy(client *http.Client, method, path, body string, header ...string) (a answer, err error) {
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	a = answer{status: response.StatusCode, header: response.Header, text: string(text)}
	if err := json.Unmarshal(text, &a.body); err != nil && len(text) > 0 {
		return a, fmt.Errorf("answer %q: %w", text, err)
	}
	return a, nil
}

func tokenBody(token string) string { return `{"token":"` + token + `"}` }

// exchange exchanges a token.
func (r *rig) exchange(token string) answer {
	r.t.Helper()
	if r.watch != nil && r.watch.Warm(r.Name) {
		r.catchUp()
	}
	return r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token))
}

// in is the rig for a subtest.
func (r *rig) in(t testing.TB) *rig {
	return &rig{Namespace: r.Namespace, t: t, cluster: r.cluster, userAgent: r.userAgent, client: r.client, dir: r.dir, store: r.store, watch: r.watch, url: r.url, log: r.log}
}

var markers, agents atomic.Int64

// userAgent tells one exchange from another, in whichever run of a test.
func userAgent(t testing.TB) string { return fmt.Sprintf("exchange %d of %s", agents.Add(1), t.Name()) }

// catchUp waits until the watch has heard of all that the test did so far.
func (r *rig) catchUp() {
	r.t.Helper()
	name := fmt.Sprintf("marker-%d", markers.Add(1))
	r.Pod(name, "default")
	r.Make("Sandbox", name)
	r.Make("SandboxClaim", name)
	all, ctx := r.watch.Cluster(), context.Background()
	r.eventually("the watch has heard of everything", func() bool {
		_, err1 := all.Pod(ctx, r.Name, name)
		_, err2 := all.Sandbox(ctx, r.Name, name)
		_, err3 := all.Claim(ctx, r.Name, name)
		return err1 == nil && err2 == nil && err3 == nil
	})
}

// gets expects a key for an agent of this namespace.
func (r *rig) gets(a answer, agent string) answer {
	r.t.Helper()
	if want := r.Name + ":" + agent; a.status != http.StatusCreated || a.body.Namespace != want || a.body.Agent != agent {
		r.t.Fatalf("got %d %s, want 201 for %s", a.status, a.text, want)
	}
	return a
}

// refused expects a refusal with a code, and words in its sentence.
func (r *rig) refused(a answer, status int, code string, words ...string) answer {
	r.t.Helper()
	if a.status != status || a.body.Error.Code != code {
		r.t.Fatalf("got %d %s, want %d %s", a.status, a.text, status, code)
	}
	for _, w := range words {
		if !strings.Contains(a.body.Error.Message, w) {
			r.t.Errorf("the message %q does not say %q", a.body.Error.Message, w)
		}
	}
	for _, theirs := range []string{"invalid bearer token", "etcd", "https://"} {
		if strings.Contains(a.text, theirs) {
			r.t.Errorf("the answer %q quotes the API server: %q", a.text, theirs)
		}
	}
	return a
}

// eventually waits for a condition.
func (r *rig) eventually(what string, condition func() bool) {
	r.t.Helper()
	const bound, every = 20 * time.Second, 5 * time.Millisecond
	for deadline := time.Now().Add(bound); !condition(); time.Sleep(every) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within %s", what, bound)
		}
	}
}

// log is what the exchange logged, for tests that look into it.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
