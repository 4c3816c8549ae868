package unary

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/peer"
)

// conn is one connection. One goroutine reads it; whoever has an answer writes.
type conn struct {
	server *Server
	net    net.Conn
	framer *http2.Framer // reads from in, writes to out
	ctx    context.Context
	cancel context.CancelFunc
	later  sync.WaitGroup // goroutines of calls that wait

	// Of the goroutine that reads:
	decoder  *hpack.Decoder
	fields   fields
	consumed int64 // bytes received for which it was not given new credit yet

	mu       sync.Mutex // for all below, and for writing with framer
	out      bytes.Buffer
	deadline time.Time // of net, for writing
	encoder  *hpack.Encoder
	block    bytes.Buffer // encoder's
	streams  map[uint32]*stream
	free     []*stream
	last     uint32 // the highest stream that the peer has begun
	told     uint32 // the highest that it was told will be answered
	window   int64  // bytes that the peer takes
	initial  int64  // the same, of each new stream
	widest   int64  // stream.window was never above it
	buffered int    // bytes of requests that have not arrived whole
	givenUp  int    // calls that the peer has given up, and that run on: they count as streams do
	ending   phase
}

// phase is how far a connection has come on its way to the end.
type phase int

const (
	serving   phase = iota
	announced       // the peer was told to begin no more calls, and may not have heard it
	closing         // it has heard it; those begun are finished
	finished        // nothing is sent any more
)

const (
	readBuffer = 16 << 10
	// streamSlack lets a request arrive whole without a window update: gRPC's prefix, and some padding.
	streamSlack = 1 << 10
	// connWindow is what a peer may send of all requests together before it hears from the server.
	connWindow = 1 << 20
	// initialWindow is what both sides of a connection begin with (RFC 9113, 6.9.2).
	initialWindow = 65535
	maxWindow     = 1<<31 - 1
	headerTable   = 4096     // bytes: what both sides assume (RFC 9113, 6.5.2)
	maxFrame      = 16 << 10 // what every peer takes (RFC 9113, 4.2)
	flushAt       = 64 << 10
)

func newConn(s *Server, nc net.Conn, calls context.Context) *conn { //nolint:revive // not the context of this call
	c := &conn{server: s, net: nc, streams: map[uint32]*stream{}, window: initialWindow, initial: initialWindow, told: maxWindow}
	c.ctx, c.cancel = context.WithCancel(peer.NewContext(calls, &peer.Peer{Addr: nc.RemoteAddr()}))
	c.framer = http2.NewFramer(&c.out, bufio.NewReaderSize(reader{c}, readBuffer))
	c.fields.keep = s.options.Metadata
	c.decoder = hpack.NewDecoder(headerTable, c.fields.emit)
	c.decoder.SetMaxStringLength(maxHeaderBytes)
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.framer.SetReuseFrames()
	c.encoder = hpack.NewEncoder(&c.block)
	return c
}

// reader is where the framer's bytes come from. Before it waits for the peer it sends what the peer waits for: so many calls
// that came together are answered together.
type reader struct{ *conn }

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	err := r.flush()
	r.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return r.net.Read(p)
}

// serve reads until the connection ends, and returns when everything that ran for it has.
func (c *conn) serve() {
	defer c.leave()
	defer c.later.Wait()
	defer c.cancel()
	defer c.net.Close() //nolint:errcheck // whatever it says, it is over
	defer context.AfterFunc(c.ctx, func() { _ = c.net.Close() })()
	tenth := c.server.options.ConnectionAge / 10
	age := time.AfterFunc(c.server.options.ConnectionAge-tenth+rand.N(2*tenth+1), func() { //nolint:gosec // spreads load
		c.drain()
		c.end(c.server.options.ConnectionAgeGrace)
	})
	defer age.Stop()
	if c.handshake() == nil && c.next(c.greet) {
		for c.next(c.handle) {
		}
	}
	c.lingering()
}

var errNotHTTP2 = errors.New("not HTTP/2")

// handshake sends the server's settings, and reads the client's preface.
func (c *conn) handshake() error {
	_ = c.net.SetReadDeadline(time.Now().Add(handshakeTimeout))
	c.mu.Lock()
	err := errors.Join(
		c.framer.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(c.server.streamWindow())},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeaderBytes},
		),
		c.framer.WriteWindowUpdate(0, connWindow-initialWindow),
		c.flush(),
	)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.net, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		c.fail(http2.ErrCodeProtocol)
		return errNotHTTP2
	}
	return nil
}

// greet handles the peer's first frame, which must be its settings.
func (c *conn) greet(f http2.Frame) error {
	settings, ok := f.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending < finished {
		_ = c.net.SetReadDeadline(time.Time{})
	}
	return c.settings(settings)
}

// streamWindow is what a peer may send of one request.
func (s *Server) streamWindow() int64 { return int64(s.options.MaxRequestBytes) + streamSlack }

// read reads a frame. Headers that the framer refuses were not decoded, which leaves both sides with different tables.
func (c *conn) read() (http2.Frame, error) {
	head, err := c.framer.ReadFrameHeader()
	if err != nil {
		return nil, err
	}
	f, err := c.framer.ReadFrameForHeader(head)
	if err != nil && head.Type == http2.FrameHeaders {
		err = ofConnection(err)
	}
	return f, err
}

// ofConnection makes the error of a stream one of the whole connection.
func ofConnection(err error) error {
	var reset http2.StreamError
	if errors.As(err, &reset) {
		return http2.ConnectionError(reset.Code)
	}
	return err
}

// next reads and handles one frame. It says whether there may be more.
func (c *conn) next(handle func(http2.Frame) error) bool {
	f, err := c.read()
	if err == nil {
		err = handle(f)
	}
	if err != nil && !c.survives(err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending < finished
}

// survives tells the peer what was wrong. It says whether that ended one call alone.
func (c *conn) survives(err error) bool {
	var (
		broken http2.ConnectionError
		reset  http2.StreamError
	)
	switch {
	case errors.As(err, &reset):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = max(c.last, reset.StreamID)
		c.reset(reset.StreamID, reset.Code)
		return true
	case errors.As(err, &broken):
		c.fail(http2.ErrCode(broken))
	case errors.Is(err, http2.ErrFrameTooLarge):
		c.fail(http2.ErrCodeFrameSize)
	}
	return false
}

// handle wants an http2.StreamError for what ends one call, and an http2.ConnectionError for what ends all of them.
func (c *conn) handle(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.data(f)
	case *http2.HeadersFrame:
		c.fields.begin(f)
		return c.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame: // the framer sees to it that it is of the same stream
		return c.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f := f.(type) {
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		return c.ping(f)
	case *http2.RSTStreamFrame:
		return c.gaveUp(f.StreamID)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // GOAWAY asks for nothing, and unknown frames are to be ignored
}

func (c *conn) fragment(piece []byte, last bool) error {
	if err := c.fields.read(c.decoder, piece, last); err != nil || !last {
		return err
	}
	return c.headers()
}

func (c *conn) ping(f *http2.PingFrame) error {
	if !f.IsAck() {
		return c.framer.WritePing(true, f.Data)
	}
	if f.Data == drainPing && c.ending == announced {
		c.ending = closing
		c.told = c.last
		err := c.framer.WriteGoAway(c.told, http2.ErrCodeNo, nil)
		c.finishIfIdle()
		return err
	}
	return nil
}
