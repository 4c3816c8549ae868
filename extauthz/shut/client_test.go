package shut_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// request is what a client sends, byte for byte. Path is the whole request target.
type request struct {
	method  string   // "" is GET
	path    string   // "" is /v1/beliefs
	headers []string // "Name: value", in the order they are sent in; "Host" is added
	body    string   // what follows the head, as it is
}

func (r request) withDefaults() request {
	if r.method == "" {
		r.method = http.MethodGet
	}
	if r.path == "" {
		r.path = "/v1/beliefs"
	}
	return r
}

// answer is what a client gets.
type answer struct {
	status int // 0: the gateway hung up, or reset the stream
	header http.Header
	body   string
}

// patience bounds every wait of a client for the gateway.
const patience = 20 * time.Second

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// http1 sends a request over HTTP/1.1.
func http1(t *testing.T, address string, r request) answer {
	t.Helper()
	conn := dial(t, address)
	defer conn.Close() //nolint:errcheck // it is closed either way
	lines := append([]string{r.method + " " + r.path + " HTTP/1.1", "Host: gateway"}, r.headers...)
	// Envoy may answer, and hang up, before it has read all of a request that is too large.
	_, _ = io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"+r.body)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.method})
	if err != nil {
		return hungUp(t, err)
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// hungUp is no answer. That the gateway says nothing at all in time is a fault.
func hungUp(t *testing.T, err error) answer {
	t.Helper()
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatalf("no answer within %s", patience)
	}
	return answer{}
}

// overHTTP2 sends the same over HTTP/2, in frames of its own: net/http would mend a header, or refuse to send it.
func overHTTP2(t *testing.T, address string, r request) answer {
	t.Helper()
	return startHTTP2(t, address, r)()
}

// startHTTP2 sends a request over HTTP/2; what it returns waits for the answer.
func startHTTP2(t *testing.T, address string, r request) func() answer {
	t.Helper()
	fields := []hpack.HeaderField{{Name: ":method", Value: r.method}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "gateway"}, {Name: ":path", Value: r.path}}
	for _, line := range r.headers {
		name, value, _ := strings.Cut(line, ":")
		if name == "Authorization" { // the others keep their case, which is what some rows are about
			name = "authorization"
		}
		fields = append(fields, hpack.HeaderField{Name: name, Value: strings.TrimLeft(value, " ")})
	}
	return frames(t, address, fields, r.body)
}

// frames opens one stream with these fields; what it returns reads the answer.
func frames(t *testing.T, address string, fields []hpack.HeaderField, body string) func() answer {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range fields {
		if err := encoder.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	conn := dial(t, address)
	// Written at once: a gateway that resets the connection in between must not look like a failure to write.
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, conn)
	const frame = 16 << 10 // what a peer takes unless it says more
	first, rest := cut(block.Bytes(), frame)
	err := errors.Join(framer.WriteSettings(), framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: first, EndHeaders: len(rest) == 0, EndStream: body == "",
	}))
	for len(rest) > 0 {
		first, rest = cut(rest, frame)
		err = errors.Join(err, framer.WriteContinuation(1, len(rest) == 0, first))
	}
	if body != "" {
		err = errors.Join(err, framer.WriteData(1, true, []byte(body)))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(out.Bytes())
	return func() answer {
		defer conn.Close() //nolint:errcheck // it is closed either way
		return readStream(t, framer)
	}
}

func cut(b []byte, n int) (first, rest []byte) {
	n = min(n, len(b))
	return b[:n], b[n:]
}

// readStream reads frames until the one stream has ended.
func readStream(t *testing.T, framer *http2.Framer) answer {
	t.Helper()
	framer.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	got := answer{header: http.Header{}}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return hungUp(t, err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == ":status" {
					got.status, _ = strconv.Atoi(field.Value)
				}
				got.header.Add(field.Name, field.Value)
			}
		case *http2.DataFrame:
			got.body += string(f.Data())
		case *http2.RSTStreamFrame:
			return got // after an answer it says no more than that the rest of the body is not wanted
		case *http2.GoAwayFrame:
			return answer{}
		}
		if f.Header().StreamID == 1 && f.Header().Flags.Has(http2.FlagDataEndStream) {
			return got
		}
	}
}
