package kubetest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// Proxy stands between a client and the API server and makes it ill.
type Proxy struct {
	server *httptest.Server
	fault  atomic.Pointer[func(*http.Request) http.HandlerFunc]
}

// Proxy starts a proxy that passes everything on. It ends with the test.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	target, err := url.Parse(c.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	if forward.Transport, err = rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: c.creds.CAPEM}}); err != nil {
		t.Fatal(err)
	}
	forward.FlushInterval = -1 // watches
	forward.ErrorLog = log.New(io.Discard, "", 0)
	p := &Proxy{}
	p.Fault(nil)
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := (*p.fault.Load())(r); answer != nil {
			answer(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	t.Cleanup(func() { p.Close() })
	return p
}

// Config reaches the API server through the proxy.
func (p *Proxy) Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = p.server.URL
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return config
}

// Fault says for each request who answers it; nil, the function's or its result, passes it on.
func (p *Proxy) Fault(fault func(*http.Request) http.HandlerFunc) {
	if fault == nil {
		fault = func(*http.Request) http.HandlerFunc { return nil }
	}
	p.fault.Store(&fault)
}

// Hang answers nothing, until the client gives up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Cut ends all connections, those of watches too. New ones are taken.
func (p *Proxy) Cut() { p.server.CloseClientConnections() }

// Close ends the proxy: connections are refused.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}
