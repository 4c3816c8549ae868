package unary

import (
	"context"
	"encoding/binary"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stream is one call, from its headers to the end of its answer.
type stream struct {
	id uint32
	request
	body     []byte // as much of the message as has arrived
	received int64  // bytes, as the flow control counts them
	whole    bool   // the peer sends no more
	dead     bool   // the peer gave up, or was told to

	window   int64  // bytes that the peer takes, beyond the connection's initial window; often below zero
	answer   []byte // its body; what is before sent has gone
	sent     int
	trailers bool               // follow the body: it is a gRPC message
	cancel   context.CancelFunc // of what waits for it; nil: nothing does
}

// prefix is what stands before a message: whether it is compressed, and its length.
const prefix = 5

// headers begins a call, or ends its message with trailers.
func (c *conn) headers() error {
	c.mu.Lock()
	s, err := c.begin(&c.fields)
	c.mu.Unlock()
	if err != nil || !s.whole {
		return err
	}
	return c.complete(s, s.body)
}

func (c *conn) begin(f *fields) (*stream, error) {
	if s := c.streams[f.id]; s != nil {
		return s, s.end(f)
	}
	switch {
	case f.id%2 == 0:
		return nil, http2.ConnectionError(http2.ErrCodeProtocol)
	case f.id <= c.last && f.end && !f.pseudo: // trailers of a call that was refused before they came
		return nil, http2.StreamError{StreamID: f.id, Code: http2.ErrCodeStreamClosed}
	case f.id <= c.last:
		return nil, http2.ConnectionError(http2.ErrCodeStreamClosed)
	}
	c.last = f.id
	switch {
	case !f.whole():
		return nil, http2.StreamError{StreamID: f.id, Code: http2.ErrCodeProtocol}
	case c.ending > announced || len(c.streams)+c.givenUp >= maxStreams:
		return nil, http2.StreamError{StreamID: f.id, Code: http2.ErrCodeRefusedStream} // it was not begun, and may be sent again
	}
	s := c.newStream()
	s.id, s.request, s.whole, s.dead = f.id, c.server.request(c.ctx, f), f.end, false
	c.streams[f.id] = s
	return s, nil
}

// end takes headers that come after a message.
func (s *stream) end(f *fields) error {
	switch {
	case s.whole:
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeStreamClosed}
	case !f.end || f.pseudo || f.broken:
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	s.whole = true
	return nil
}

// data takes a piece of a message.
func (c *conn) data(f *http2.DataFrame) error {
	c.mu.Lock()
	s, err := c.arrived(f)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	message := f.Data()
	if len(s.body) > 0 || !s.whole { // else it came in one piece, as nearly always, and is not copied
		c.keep(s, message)
		message = s.body
	}
	whole := s.whole && !s.dead
	c.mu.Unlock()
	if !whole {
		return nil
	}
	return c.complete(s, message)
}

// arrived keeps the flow control's books. Of the connection's window the peer has back what was read, at once: only that of
// each stream holds it back.
func (c *conn) arrived(f *http2.DataFrame) (*stream, error) {
	n := int64(f.Length)
	if c.consumed += n; c.consumed >= connWindow/2 {
		_ = c.framer.WriteWindowUpdate(0, uint32(c.consumed))
		c.consumed = 0
	}
	s := c.streams[f.StreamID]
	switch {
	case s == nil && (f.StreamID > c.last || f.StreamID%2 == 0):
		return nil, http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil || s.whole:
		return nil, http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.received += n; s.received > c.server.streamWindow() {
		return nil, http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	s.whole = f.StreamEnded()
	s.length -= int64(len(f.Data()))
	return s, nil
}

// keep keeps a piece until the rest is there. What is too large is refused at once, rather than when all of it has come.
func (c *conn) keep(s *stream, piece []byte) {
	if s.refusal != nil {
		return
	}
	s.body = append(s.body, piece...)
	c.buffered += len(piece)
	inAll := c.server.buffered.Add(int64(len(piece)))
	limit := c.server.options.MaxRequestBytes
	tooLarge := len(s.body) > prefix+limit || len(s.body) >= prefix && int64(binary.BigEndian.Uint32(s.body[1:])) > int64(limit)
	if tooLarge || c.buffered > maxBuffered || inAll > maxBufferedInAll {
		c.respond(s, nil, status.Errorf(codes.ResourceExhausted, "the message, or what is on its way altogether, is too large: one may have %d bytes", limit))
	}
}

// complete answers a call whose message is there.
func (c *conn) complete(s *stream, body []byte) error {
	if s.declared && s.length != 0 {
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	var (
		answer []byte
		later  Later
	)
	message, err := s.message(body, c.server.options.MaxRequestBytes)
	if err == nil {
		answer, later, err = s.handler(s.ctx, message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if later != nil {
		c.wait(s, later)
		return nil
	}
	c.respond(s, answer, err)
	if c.out.Len() > flushAt {
		return c.flush()
	}
	return nil
}

// message is what the prefix says that there is.
func (s *stream) message(body []byte, limit int) ([]byte, error) {
	if s.refusal != nil {
		return nil, s.refusal
	}
	if len(body) < prefix {
		return nil, status.Error(codes.Internal, "the call has no message")
	}
	n := int64(binary.BigEndian.Uint32(body[1:]))
	switch message := body[prefix:]; {
	case n > int64(limit):
		return nil, status.Errorf(codes.ResourceExhausted, "the message is too large: it may have %d bytes", limit)
	case n != int64(len(message)):
		return nil, status.Error(codes.Internal, "the message is cut short, or there are several")
	case body[0] != 0:
		return nil, status.Error(codes.Unimplemented, "the message is compressed: only identity is understood")
	default:
		return message, nil
	}
}

// wait gives a call a goroutine. It wants c.mu.
func (c *conn) wait(s *stream, later Later) {
	c.release(s)
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	s.cancel = cancel
	c.later.Go(func() {
		defer cancel()
		answer, err := later(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		s.cancel = nil
		if s.dead {
			c.givenUp--
			c.recycle(s)
			return
		}
		c.respond(s, answer, err)
		_ = c.flush() // the goroutine that reads finds the same error
	})
}
