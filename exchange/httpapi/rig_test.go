package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/exchange"
	"sallyport/exchange/devcluster"
	"sallyport/exchange/httpapi"
	"sallyport/exchange/oidc"
	"sallyport/exchange/sandbox"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

const audience = "recall"

// rig is an exchange on its real parts: a development cluster, its issuer, a key store, and HTTP.
type rig struct {
	t        *testing.T
	handler  *httpapi.Handler
	cluster  *devcluster.Cluster
	issuer   *devcluster.Issuer
	store    keystore.Store
	verifier *key.Verifier
	admin    string
	log      *bytes.Buffer
	offset   atomic.Int64
	broken   atomic.Bool // the cluster cannot be asked
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.offset.Load())) }

// Pod and the other methods of sandbox.Cluster pass through, unless the cluster is broken.
type breakable struct {
	*devcluster.Cluster
	broken *atomic.Bool
}

var errBroken = errors.New("connection refused by 10.0.0.1, token eyJhbGci")

func (b breakable) Pod(ctx context.Context, namespace, name string) (sandbox.Pod, error) {
	if b.broken.Load() {
		return sandbox.Pod{}, errBroken
	}
	return b.Cluster.Pod(ctx, namespace, name)
}

func newRig(t *testing.T, opts sandbox.Options) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, log: &bytes.Buffer{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.cluster, err = devcluster.Open(t.Context(), filepath.Join(dir, "cluster.db"))
	must(err)
	t.Cleanup(func() { _ = r.cluster.Close() }) // it is only a test's
	r.issuer, err = devcluster.OpenIssuer(t.Context(), filepath.Join(dir, "issuer.key"), r.now)
	must(err)
	jwks, err := r.issuer.JWKS(t.Context())
	must(err)
	reviewer, err := oidc.New(jwks, oidc.Options{Issuer: devcluster.IssuerURL, Audience: audience, Now: r.now})
	must(err)
	r.store, err = keystore.Open(t.Context(), "sqlite:"+filepath.Join(dir, "keys.db"), r.now)
	must(err)
	t.Cleanup(func() { _ = r.store.Close() }) // a test may have closed it
	signer, err := key.NewSigner(t.Context(), r.store, key.SignerOptions{
		Issuer: key.DefaultIssuer, Audience: key.DefaultAudience, MaxTTL: exchange.DefaultKeyTTL, Lifetime: key.DefaultSigningKeyLifetime, Now: r.now,
	})
	must(err)
	secret := key.NewSecret()
	r.admin = secret.Text
	must(exchange.EnsureAdminKey(t.Context(), r.store, secret.Text, r.now()))
	r.verifier = key.NewVerifier(key.NewKeySet(r.store, r.now), key.DefaultIssuer, key.DefaultAudience, r.now)
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	x := exchange.New(exchange.Options{
		Authenticator: &exchange.PodAuthenticator{Reviewer: reviewer, Cluster: breakable{r.cluster, &r.broken}, Options: opts},
		Store:         r.store, Signer: signer, Verifier: r.verifier, KeyTTL: exchange.DefaultKeyTTL, Now: r.now, Log: log,
	})
	r.handler = httpapi.New(x, r.store.Ping, log)
	return r
}

// token makes the pod known and returns its token.
func (r *rig) token(spec devcluster.PodSpec) string {
	r.t.Helper()
	return r.tokenFor(spec, audience, time.Hour)
}

func (r *rig) tokenFor(spec devcluster.PodSpec, aud string, ttl time.Duration) string {
	r.t.Helper()
	spec.Namespace = "agents"
	if spec.ServiceAccount == "" {
		spec.ServiceAccount = "default"
	}
	pod, err := r.cluster.EnsurePod(r.t.Context(), spec)
	if err != nil {
		r.t.Fatal(err)
	}
	token, err := r.issuer.Token(pod, aud, ttl)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a answer) code() string {
	e, _ := a.body["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

func (a answer) message() string {
	e, _ := a.body["error"].(map[string]any)
	message, _ := e["message"].(string)
	return message
}

func (a answer) text(name string) string {
	s, _ := a.body[name].(string)
	return s
}

// send sends a body as it is.
func (r *rig) send(method, path, bearer, body string) answer {
	r.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request)
	a := answer{status: w.Code, header: w.Header()}
	text, err := io.ReadAll(w.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(text) > 0 && w.Code != http.StatusNoContent && path != "/healthz" {
		if err := json.Unmarshal(text, &a.body); err != nil {
			r.t.Fatalf("%s %s answered %q: %v", method, path, text, err)
		}
	}
	return a
}

func (r *rig) exchange(token string) answer {
	r.t.Helper()
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.send(http.MethodPost, "/v1/auth/kubernetes", "", string(body))
}

func (r *rig) renew(bearer, token string) answer {
	r.t.Helper()
	body := ""
	if token != "" {
		body = `{"token":"` + token + `"}`
	}
	return r.send(http.MethodPost, "/v1/keys/renew", bearer, body)
}

// mint exchanges a token that must be good.
func (r *rig) mint(token string) answer {
	r.t.Helper()
	a := r.exchange(token)
	if a.status != http.StatusCreated {
		r.t.Fatalf("exchange: %d %v", a.status, a.body)
	}
	return a
}
