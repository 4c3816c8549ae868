package envoy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"sallyport/envoy"
	"sallyport/envoy/envoytest"
	"sallyport/gateway/xds"
)

// authority signs certificates for a test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue signs a certificate and writes NAME.crt and NAME.key. The first one signs itself.
func (a *authority) issue(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".crt", "CERTIFICATE", der)
	a.write(t, name+".key", "PRIVATE KEY", private)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func TestTheDoorOnAnotherHostNeedsMutualTLS(t *testing.T) {
	ca := newAuthority(t)
	ca.issue(t, "server", &x509.Certificate{DNSNames: []string{"extauthz.sallyport.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	ca.issue(t, "client", &x509.Certificate{DNSNames: []string{"gateway"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	pair, err := tls.LoadX509KeyPair(ca.path("server.crt"), ca.path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	})))
	checks := &authzServer{}
	checks.respond(allow())
	authv3.RegisterAuthorizationServer(server, checks)
	go server.Serve(listener) //nolint:errcheck // ends with Stop
	t.Cleanup(server.Stop)

	for _, tt := range []struct {
		name   string
		change func(*xds.TLS)
		status int
	}{
		{"with both certificates", func(*xds.TLS) {}, http.StatusOK},
		{"a server of another name is not asked", func(c *xds.TLS) { c.SAN = "other.sallyport.svc" }, http.StatusServiceUnavailable},
		{"a client without a certificate gets no answer", func(c *xds.TLS) { c.Cert, c.Key = "", "" }, http.StatusServiceUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// A loopback address, so that the test may leave the certificate out; a remote one may not.
			r := newRig(t, func(g *xds.Gateway) {
				g.Authz.Endpoint = xds.Endpoint(listener.Addr().String())
				g.Authz.Timeout = time.Second
				g.Authz.TLS = &xds.TLS{CA: ca.path("ca.crt"), SAN: "extauthz.sallyport.svc", Cert: ca.path("client.crt"), Key: ca.path("client.key")}
				tt.change(g.Authz.TLS)
			})
			if got := r.get(t, "/v1/x"); got.status != tt.status {
				t.Errorf("status = %d, want %d; %s", got.status, tt.status, got.body)
			}
		})
	}
}

func TestABackendByName(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	backend := &recorder{}
	server := &http.Server{Handler: backend, ReadHeaderTimeout: time.Second}
	go server.Serve(listener) //nolint:errcheck // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{"localhost:" + port, "http://localhost:" + port, "127.0.0.1:" + port} {
		before := backend.count()
		r := newRig(t, func(g *xds.Gateway) { g.Backend.Endpoint = xds.Endpoint(endpoint) })
		if got := r.get(t, "/v1/x"); got.status != http.StatusOK || backend.count() != before+1 {
			t.Errorf("%s: status = %d, %s", endpoint, got.status, got.body)
		}
	}
}

func TestWorkersShareTheConnections(t *testing.T) {
	r := newRig(t)
	g := small(t)
	g.Backend.Endpoint, g.Authz.Endpoint = r.backend.endpoint, r.authz.endpoint
	e := envoytest.Start(t, g, func(c *envoy.Config) { c.Concurrency = 2 })
	before := r.backend.count()
	const clients, requests = 16, 10
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for range requests {
				response, err := client.Get(e.URL + "/x")
				if err != nil {
					t.Error(err)
					return
				}
				if got := read(t, response); got.status != http.StatusOK {
					t.Errorf("status = %d, %s", got.status, got.body)
				}
			}
		})
	}
	wg.Wait()
	if n := r.backend.count() - before; n != clients*requests {
		t.Errorf("%d requests arrived, want %d", n, clients*requests)
	}
}

func TestConnectionsAreLimitedAndTheAdminInterfaceIsNot(t *testing.T) {
	g := small(t)
	g.Limits.Connections = 2
	e := envoytest.Start(t, g)
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for range 2 {
		conn, err := net.Dial("tcp", e.Supervisor.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		if _, err := conn.Write([]byte("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatalf("within the limit: %v", err)
		}
	}
	envoytest.Eventually(t, "a third connection is refused", func() bool {
		conn, err := net.Dial("tcp", e.Supervisor.Addr().String())
		if err != nil {
			return true
		}
		defer conn.Close() //nolint:errcheck // a test
		_, _ = conn.Write([]byte("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"))
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, err = conn.Read(make([]byte, 1))
		return err != nil
	})
	if err := e.Stop(); err != nil { // drains over the admin interface
		t.Error(err)
	}
}

func TestMetricsShowTwoPagesAndNothingElse(t *testing.T) {
	port := freePort(t)
	r := newRig(t, func(g *xds.Gateway) { g.Metrics = port })
	r.get(t, "/v1/x")
	fetch := func(method, path string) answer {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+port+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, response)
	}
	page := fetch("GET", "/stats/prometheus").body
	// The names that alerts are written on.
	for _, name := range []string{
		`envoy_http_ext_authz_ok{envoy_ext_authz_prefix="sallyport",`,
		`envoy_http_ext_authz_denied{envoy_ext_authz_prefix="sallyport",`,
		`envoy_http_ext_authz_error{envoy_ext_authz_prefix="sallyport",`,
		`envoy_http_ext_authz_failure_mode_allowed{envoy_ext_authz_prefix="sallyport",`,
		`envoy_http_ext_authz_disabled{envoy_ext_authz_prefix="sallyport",`,
		`envoy_http_ext_authz_invalid{envoy_ext_authz_prefix="sallyport",`,
		`envoy_http_local_rate_limit_rate_limited{envoy_local_http_ratelimit_prefix="sallyport_token"}`,
		`envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="sallyport_authz",le="3000"}`, // the timeout is a bucket
	} {
		if !strings.Contains(page, name) {
			t.Errorf("%s is missing", name)
		}
	}
	for _, request := range []string{"GET /config_dump", "GET /", "POST /quitquitquit", "POST /ready", "POST /drain_listeners", "GET /stats/prometheus/../../config_dump", "GET /stats"} {
		method, path, _ := strings.Cut(request, " ")
		if got := fetch(method, path); got.status != http.StatusNotFound {
			t.Errorf("%s: status = %d, want 404", request, got.status)
		}
	}
}

// freePort returns a loopback address that nothing listens on at the moment.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // a test
	return listener.Addr().String()
}
