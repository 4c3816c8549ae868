package unary_test

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"sallyport/internal/unary"
)

// rawPeer is a client that sends frames as it likes. It reads all the time, and answers nothing by itself.
type rawPeer struct {
	*http2.Framer // to send with
	t             testing.TB
	conn          net.Conn
	encoder       *hpack.Encoder
	block         bytes.Buffer
	frames        chan frame // received; closed at the end of the connection
	patience      time.Duration
}

// frame is one that was received. Fields that its type does not have are zero.
type frame struct {
	http2.FrameHeader
	fields    map[string]string
	data      []byte
	code      http2.ErrCode
	last      uint32 // of GOAWAY
	increment uint32
}

func (f frame) ends() bool { return f.Flags.Has(http2.FlagDataEndStream) } // the same in HEADERS

const (
	manyFrames = 1 << 16  // more than a test receives
	maxFrame   = 16 << 10 // bytes
)

// dial connects with a server over a pipe, greets it, and reads its settings.
func dial(t testing.TB, s *unary.Server, settings ...http2.Setting) *rawPeer {
	t.Helper()
	l := newPipes()
	serveOn(t, s, l)
	return l.dial(t, settings...)
}

func (l *pipes) dial(t testing.TB, settings ...http2.Setting) *rawPeer {
	t.Helper()
	p := newPeer(t, l.connect(t))
	if _, err := p.conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	p.must(p.WriteSettings(settings...))
	p.until("the server's settings", func(f frame) bool { return f.Type == http2.FrameSettings })
	return p
}

func newPeer(t testing.TB, conn net.Conn) *rawPeer {
	p := &rawPeer{t: t, conn: conn, Framer: http2.NewFramer(conn, nil), frames: make(chan frame, manyFrames), patience: 30 * time.Second}
	p.encoder = hpack.NewEncoder(&p.block)
	p.AllowIllegalWrites = true
	go p.read()
	return p
}

func (p *rawPeer) read() {
	defer close(p.frames)
	in := http2.NewFramer(nil, p.conn)
	in.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		received, err := in.ReadFrame()
		if err != nil {
			return
		}
		f := frame{FrameHeader: received.Header()}
		switch received := received.(type) {
		case *http2.DataFrame:
			f.data = clone(received.Data())
		case *http2.MetaHeadersFrame:
			f.fields = map[string]string{}
			for _, h := range received.Fields {
				f.fields[h.Name] = h.Value
			}
		case *http2.RSTStreamFrame:
			f.code = received.ErrCode
		case *http2.GoAwayFrame:
			f.code, f.last = received.ErrCode, received.LastStreamID
		case *http2.WindowUpdateFrame:
			f.increment = received.Increment
		}
		p.frames <- f
	}
}

func (p *rawPeer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// until skips frames to one that is wanted.
func (p *rawPeer) until(what string, wanted func(frame) bool) frame {
	p.t.Helper()
	patience := time.After(p.patience)
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				p.t.Fatalf("the connection ended before %s", what)
			}
			if wanted(f) {
				return f
			}
		case <-patience:
			p.t.Fatalf("there was never %s", what)
		}
	}
}

// of waits for the next frame of a stream.
func (p *rawPeer) of(id uint32) frame {
	p.t.Helper()
	return p.until("a frame of the stream", func(f frame) bool { return f.StreamID == id && f.Type != http2.FrameWindowUpdate })
}

// answer is all that was sent to one call.
type answer struct {
	fields  map[string]string // headers and trailers
	body    []byte
	pieces  int
	refused http2.ErrCode // from RST_STREAM, if that was all
}

// answers waits for the answers to calls, which may come in any order.
func (p *rawPeer) answers(ids ...uint32) map[uint32]answer {
	p.t.Helper()
	got, missing := map[uint32]answer{}, map[uint32]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for len(missing) > 0 {
		f := p.until("an answer", func(f frame) bool { return missing[f.StreamID] })
		a := got[f.StreamID]
		switch f.Type {
		case http2.FrameHeaders:
			if a.fields == nil {
				a.fields = map[string]string{}
			}
			for name, value := range f.fields {
				a.fields[name] = value
			}
		case http2.FrameData:
			a.body, a.pieces = append(a.body, f.data...), a.pieces+1
		case http2.FrameRSTStream:
			a.refused = f.code
			delete(missing, f.StreamID)
		}
		if f.Type != http2.FrameRSTStream && f.ends() {
			delete(missing, f.StreamID)
		}
		got[f.StreamID] = a
	}
	return got
}

// roundTrip returns what was received until the server has handled all that was sent: it has answered a ping.
func (p *rawPeer) roundTrip() (before []frame) {
	p.t.Helper()
	p.must(p.WritePing(false, [8]byte{'h', 'e', 'r', 'e'}))
	p.until("the answer to a ping", func(f frame) bool {
		pong := f.Type == http2.FramePing && f.Flags.Has(http2.FlagPingAck)
		if !pong {
			before = append(before, f)
		}
		return pong
	})
	return before
}

// fails holds that the connection ends, and says with which error.
func (p *rawPeer) fails() http2.ErrCode {
	p.t.Helper()
	code := p.until("a GOAWAY", func(f frame) bool { return f.Type == http2.FrameGoAway }).code
	p.isOver()
	return code
}

func (p *rawPeer) isOver() {
	p.t.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case _, ok := <-p.frames:
			if !ok {
				return
			}
		case <-patience:
			p.t.Fatal("the connection did not end")
		}
	}
}

// call sends the headers of a call, as gRPC clients do, and others.
func (p *rawPeer) call(id uint32, method string, end bool, more ...string) {
	p.t.Helper()
	p.headers(id, end, append([]string{
		":method", "POST", ":scheme", "http", ":path", method, ":authority", "test", "content-type", "application/grpc", "te", "trailers",
	}, more...)...)
}

func (p *rawPeer) headers(id uint32, end bool, fields ...string) {
	p.t.Helper()
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.encode(fields...), EndStream: end, EndHeaders: true}))
}

func (p *rawPeer) encode(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.must(p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	return p.block.Bytes()
}

// ask sends a whole call.
func (p *rawPeer) ask(id uint32, method string, request []byte) {
	p.t.Helper()
	p.call(id, method, false)
	whole := message(request)
	for ; len(whole) > maxFrame; whole = whole[maxFrame:] {
		p.must(p.WriteData(id, false, whole[:maxFrame]))
	}
	p.must(p.WriteData(id, true, whole))
}

// works holds that the connection still serves.
func (p *rawPeer) works(id uint32) {
	p.t.Helper()
	p.ask(id, methodNow, []byte("works"))
	if a := p.answers(id)[id]; !bytes.Equal(a.body, message([]byte("works"))) || a.fields["grpc-status"] != "0" {
		p.t.Errorf("the next call was answered by %+v", a)
	}
}

// pipes is a listener without a network, so that it works where time is synctest's.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// connect returns the client's side of a connection, which the test closes.
func (l *pipes) connect(t testing.TB) net.Conn {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	l.conns <- server
	return client
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, errors.New("closed")
	}
}

func (l *pipes) Close() error   { l.close(); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{} }
