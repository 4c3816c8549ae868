package unary_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"sallyport/internal/unary"
)

// Here are requests that are no gRPC calls, and frames that are no requests.

func TestWhoIsNoGRPCClientIsToldSo(t *testing.T) {
	server := unary.New(handlers(nil), options())
	for name, c := range map[string]struct {
		fields       []string
		status, says string
	}{
		"a browser": {
			[]string{
				":method", "GET", ":authority", "127.0.0.1:1", ":scheme", "http", ":path", "/", "upgrade-insecure-requests", "1",
				"user-agent", "Mozilla/5.0 (X11; Linux x86_64)", "accept", "text/html,*/*;q=0.8", "accept-encoding", "gzip, br", "cookie", "a=b",
			}, "415", "use a gRPC client",
		},
		"another content type":             {[]string{":method", "POST", ":scheme", "http", ":path", methodNow, "content-type", "application/json"}, "415", "use a gRPC client"},
		"one that only begins like gRPC's": {[]string{":method", "POST", ":scheme", "http", ":path", methodNow, "content-type", "application/grpc-web"}, "415", "use a gRPC client"},
		"another method":                   {[]string{":method", "PUT", ":scheme", "http", ":path", methodNow, "content-type", "application/grpc+proto"}, "405", "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			p := dial(t, server)
			p.headers(1, true, c.fields...)
			p.headers(3, false, c.fields...)
			p.must(p.WriteData(3, true, []byte("{}")))
			for id, a := range p.answers(1, 3) {
				if a.fields[":status"] != c.status || a.fields["content-type"] != "text/plain; charset=utf-8" || !strings.Contains(string(a.body), c.says) {
					t.Errorf("stream %d: %v %q", id, a.fields, a.body)
				}
			}
			p.works(5)
		})
	}
}

func TestAConnectionThatIsNotHTTP2IsClosed(t *testing.T) {
	r := serve(t, unary.New(handlers(nil), options()))
	conn, err := net.Dial("unix", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test has what it wants by then
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("it was not closed but broken: %v", err)
	}
}

func TestACallThatIsNotHTTP2sIsReset(t *testing.T) {
	server := unary.New(handlers(nil), options())
	head := []string{":method", "POST", ":scheme", "http", ":path", methodNow, "content-type", "application/grpc"}
	with := func(more ...string) []string { return append(append([]string{}, head...), more...) }
	for name, fields := range map[string][]string{
		"without a method":               head[2:],
		"without a scheme":               append(append([]string{}, head[:2]...), head[4:]...),
		"without a path":                 append(append([]string{}, head[:4]...), head[6:]...),
		"with two paths":                 append([]string{":path", "/"}, head...),
		"with an unknown pseudo-header":  append([]string{":other", "x"}, head...),
		"with a pseudo-header too late":  with(":authority", "x"),
		"with an upper-case name":        with("X-Name", "x"),
		"with a line break in a value":   with("x-name", "a\r\nb"),
		"with a field of a connection":   with("connection", "close"),
		"with another te":                with("te", "gzip"),
		"with two lengths that differ":   with("content-length", "5", "content-length", "6"),
		"with a length that is none":     with("content-length", "-5"),
		"with more than it is long":      with("content-length", "4"),
		"with less than it is long":      with("content-length", "6"),
		"with an empty name":             with("", "x"),
		"with a name that is not a word": with("a b", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			p := dial(t, server)
			p.headers(1, false, fields...)
			p.must(p.WriteData(1, true, message(nil)))
			if a := p.answers(1)[1]; a.refused != http2.ErrCodeProtocol {
				t.Errorf("%+v", a)
			}
			p.works(3)
		})
	}
}

func TestAMessageThatIsNotWhatItsPrefixSaysIsRefused(t *testing.T) {
	p := dial(t, unary.New(handlers(nil), options()))
	whole := message([]byte("hello"))
	id := uint32(1)
	for name, c := range map[string]struct {
		sent   []byte
		status string
	}{
		"no message":     {nil, "13"},
		"half a prefix":  {whole[:3], "13"},
		"half a message": {whole[:8], "13"},
		"two messages":   {append(clone(whole), whole...), "13"},
		"a compressed":   {append([]byte{1}, whole[1:]...), "12"},
		"a large one":    {[]byte{0, 1, 0, 0, 0}, "8"},
		"the largest":    {[]byte{0, 255, 255, 255, 255}, "8"},
	} {
		for _, pieces := range []int{1, 2} {
			p.call(id, methodNow, false)
			if pieces == 2 {
				p.must(p.WriteData(id, false, c.sent[:len(c.sent)/2]))
			}
			p.must(p.WriteData(id, true, c.sent[(pieces-1)*len(c.sent)/2:]))
			if a := p.answers(id)[id]; a.fields["grpc-status"] != c.status {
				t.Errorf("%s: %+v", name, a)
			}
			id += 2
		}
	}
	p.call(id, methodNow, true)
	if a := p.answers(id)[id]; a.fields["grpc-status"] != "13" {
		t.Errorf("headers alone: %+v", a)
	}
	p.works(id + 2)
}

func TestAFrameOutOfPlaceEndsTheConnection(t *testing.T) {
	server := unary.New(handlers(nil), options())
	for name, c := range map[string]struct {
		send func(p *rawPeer) error
		want http2.ErrCode
	}{
		"a message of no call": {func(p *rawPeer) error { return p.WriteData(5, true, nil) }, http2.ErrCodeProtocol},
		"an end of no call":    {func(p *rawPeer) error { return p.WriteRSTStream(5, http2.ErrCodeCancel) }, http2.ErrCodeProtocol},
		"room for no call":     {func(p *rawPeer) error { return p.WriteWindowUpdate(5, 1) }, http2.ErrCodeProtocol},
		"a push": {func(p *rawPeer) error {
			return p.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
		}, http2.ErrCodeProtocol},
		"settings without end":      {func(p *rawPeer) error { return p.WriteSettings(make([]http2.Setting, 101)...) }, http2.ErrCodeEnhanceYourCalm}, // CVE-2019-9515
		"a frame that is too long":  {func(p *rawPeer) error { return p.WriteRawFrame(99, 0, 0, make([]byte, maxFrame+1)) }, http2.ErrCodeFrameSize},
		"a continuation of nothing": {func(p *rawPeer) error { return p.WriteContinuation(1, true, nil) }, http2.ErrCodeProtocol},
		"headers that nobody decodes": {func(p *rawPeer) error {
			return p.WriteRawFrame(http2.FrameHeaders, 5, 3, []byte{0xff, 0xff, 0xff, 0xff, 0xff})
		}, http2.ErrCodeCompression},
		// What was not decoded leaves both sides with different tables; and what came after would be read as of the call before.
		"headers shorter than their padding": {func(p *rawPeer) error { return p.WriteRawFrame(http2.FrameHeaders, 0xd, 3, []byte{200, 0x82}) }, http2.ErrCodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			p := dial(t, server)
			p.works(1)
			_ = c.send(p) // the server may have closed before the last byte
			if code := p.fails(); code != c.want {
				t.Errorf("it ended with %v", code)
			}
		})
	}
}

func TestAFirstFrameThatIsNotGoodSettingsEndsTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		send func(p *rawPeer) error
		want http2.ErrCode
	}{
		"none":                       {func(p *rawPeer) error { return p.WritePing(false, [8]byte{}) }, http2.ErrCodeProtocol},
		"an acknowledgement":         {func(p *rawPeer) error { return p.WriteSettingsAck() }, http2.ErrCodeProtocol},
		"a window that is too large": {func(p *rawPeer) error { return p.WriteSettings(initialWindow(1 << 31)) }, http2.ErrCodeFlowControl},
		"half a setting":             {func(p *rawPeer) error { return p.WriteRawFrame(http2.FrameSettings, 0, 0, []byte{0, 4, 0}) }, http2.ErrCodeFrameSize},
		"settings of a stream":       {func(p *rawPeer) error { return p.WriteRawFrame(http2.FrameSettings, 0, 1, nil) }, http2.ErrCodeProtocol},
		"a frame longer than may be": {func(p *rawPeer) error { return p.WriteRawFrame(99, 0, 0, make([]byte, maxFrame+1)) }, http2.ErrCodeFrameSize},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPipes()
			serveOn(t, unary.New(handlers(nil), options()), l)
			p := newPeer(t, l.connect(t))
			if _, err := p.conn.Write([]byte(http2.ClientPreface)); err != nil {
				t.Fatal(err)
			}
			_ = c.send(p) // the server may have closed before the last byte
			if code := p.fails(); code != c.want {
				t.Errorf("it ended with %v", code)
			}
		})
	}
}
