package shut_test

import (
	"bytes"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/envoy/envoytest"
	"sallyport/gateway/xds"
)

// backend is an HTTP server that keeps every byte that reaches it, so that even what it could not parse is seen.
type backend struct {
	endpoint xds.Endpoint

	mu      sync.Mutex
	wire    bytes.Buffer
	handler http.HandlerFunc // nil answers 200
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := &backend{endpoint: xds.Endpoint("unix:" + filepath.Join(envoytest.SocketDir(t), name+".sock"))}
	serveHTTP(t, keeping{listen(t, b.endpoint), b}, b)
	return b
}

// ServeHTTP answers as the test wants.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	h := b.handler
	b.mu.Unlock()
	if h != nil {
		h(w, r)
	}
}

func (b *backend) handle(h http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handler = h
}

// mark is the moment after which since looks.
func (b *backend) mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wire.Len()
}

// since returns what has arrived since a mark.
func (b *backend) since(mark int) arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return arrival(b.wire.Bytes()[mark:])
}

type keeping struct {
	net.Listener
	backend *backend
}

func (k keeping) Accept() (net.Conn, error) {
	conn, err := k.Listener.Accept()
	return keptConn{conn, k.backend}, err
}

type keptConn struct {
	net.Conn
	backend *backend
}

func (c keptConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.backend.mu.Lock()
	defer c.backend.mu.Unlock()
	c.backend.wire.Write(p[:n])
	return n, err
}

// arrival is what reached a backend: one request as Envoy wrote it, or nothing.
type arrival string

// path is what the backend was asked for.
func (a arrival) path() string {
	line, _, _ := strings.Cut(string(a), "\r\n")
	_, rest, _ := strings.Cut(line, " ")
	return strings.TrimSuffix(rest, " HTTP/1.1")
}

// headers returns the lines of the head, names in lower case.
func (a arrival) headers() (out [][2]string) {
	head, _, _ := strings.Cut(string(a), "\r\n\r\n")
	_, lines, _ := strings.Cut(head, "\r\n")
	for line := range strings.SplitSeq(lines, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		out = append(out, [2]string{strings.ToLower(name), strings.TrimSpace(value)})
	}
	return out
}

// values returns the values of one header.
func (a arrival) values(name string) (out []string) {
	for _, h := range a.headers() {
		if h[0] == name {
			out = append(out, h[1])
		}
	}
	return out
}
