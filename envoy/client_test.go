package envoy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
)

// answer is a response whose body has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

// raw sends bytes as they are, which net/http would not, and reads one answer. "Host" and the end of the head are added.
func (r *rig) raw(t *testing.T, requestLine string, headers ...string) answer {
	t.Helper()
	conn, err := net.DialTimeout("tcp", r.Supervisor.Addr().String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := append([]string{requestLine + " HTTP/1.1", "Host: gateway"}, headers...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}

// get sends a GET with a key.
func (r *rig) get(t *testing.T, path string) answer {
	t.Helper()
	return r.raw(t, "GET "+path, "Authorization: Bearer key")
}

func read(t *testing.T, response *http.Response) answer {
	t.Helper()
	defer response.Body.Close() //nolint:errcheck // a test
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// wantError checks that an answer is an error of the wire's form.
func wantError(t *testing.T, got answer, status int, code gateway.Code) {
	t.Helper()
	if got.status != status {
		t.Errorf("status = %d, want %d; body %s", got.status, status, got.body)
	}
	if ct := got.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type = %q", ct)
	}
	if prefix := `{"error":{"code":"` + string(code) + `","message":"`; !strings.HasPrefix(got.body, prefix) {
		t.Errorf("body = %s, want it to begin with %s", got.body, prefix)
	}
	if retry := got.header.Get("Retry-After"); (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && retry == "" {
		t.Error("no Retry-After")
	}
}

// dialRaw connects to Envoy for a test that writes its own frames.
func dialRaw(t *testing.T, r *rig) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", r.Supervisor.Addr().String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}
