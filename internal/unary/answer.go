package unary

import (
	"encoding/binary"
	"errors"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// This file writes answers. Everything here wants c.mu. Frames are written to memory, which cannot fail.

// maxErrorText bounds what is told of an error, in bytes.
const maxErrorText = 1 << 10

var (
	statusOK    = hpack.HeaderField{Name: ":status", Value: "200"}
	contentGRPC = hpack.HeaderField{Name: "content-type", Value: "application/grpc"}
	contentText = hpack.HeaderField{Name: "content-type", Value: "text/plain; charset=utf-8"}
	grpcOK      = hpack.HeaderField{Name: "grpc-status", Value: "0"}
	identity    = hpack.HeaderField{Name: "grpc-accept-encoding", Value: "identity"}
)

// respond begins the answer to a call, and ends it if the peer has room.
func (c *conn) respond(s *stream, message []byte, err error) {
	switch {
	case c.ending == finished:
		c.forget(s)
	case err != nil:
		c.respondError(s, err)
	default:
		c.writeHeaders(s.id, false, statusOK, contentGRPC)
		s.answer = binary.BigEndian.AppendUint32(append(s.answer[:0], 0), uint32(len(message)))
		s.answer = append(s.answer, message...)
		s.trailers = true
		c.send(s)
	}
}

func (c *conn) respondError(s *stream, err error) {
	var plain *plainError
	if !errors.As(err, &plain) {
		c.writeStatus(s, err)
		c.sentAll(s)
		return
	}
	c.writeHeaders(s.id, false, hpack.HeaderField{Name: ":status", Value: strconv.Itoa(plain.status)}, contentText)
	s.answer = append(s.answer[:0], plain.text...)
	c.send(s)
}

// writeStatus answers with an error and nothing else.
func (c *conn) writeStatus(s *stream, err error) {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	text := st.Message()
	text = text[:min(len(text), maxErrorText)]
	fields := []hpack.HeaderField{
		statusOK,
		contentGRPC,
		{Name: "grpc-status", Value: strconv.Itoa(int(st.Code()))},
		{Name: "grpc-message", Value: url.PathEscape(text)},
	}
	if st.Code() == codes.Unimplemented {
		fields = append(fields, identity)
	}
	c.writeHeaders(s.id, true, fields...)
}

// send sends as much of an answer as the peer takes.
func (c *conn) send(s *stream) {
	if len(s.answer) == 0 {
		return // there is none yet
	}
	for s.sent < len(s.answer) {
		n := min(int64(len(s.answer)-s.sent), c.initial+s.window, c.window, maxFrame)
		if n <= 0 {
			return
		}
		piece := s.answer[s.sent : s.sent+int(n)]
		s.sent += len(piece)
		s.window -= n
		c.window -= n
		_ = c.framer.WriteData(s.id, !s.trailers && s.sent == len(s.answer), piece)
	}
	if s.trailers {
		c.writeHeaders(s.id, true, grpcOK)
	}
	c.sentAll(s)
}

// sentAll ends a call. A peer that still sends its message is told that it need not.
func (c *conn) sentAll(s *stream) {
	if !s.whole {
		_ = c.framer.WriteRSTStream(s.id, http2.ErrCodeNo)
	}
	c.forget(s)
}

func (c *conn) writeHeaders(id uint32, end bool, fields ...hpack.HeaderField) {
	c.block.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(f)
	}
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndStream: end, EndHeaders: true})
}

// flush sends what was written. A peer that does not take it in time is given up.
func (c *conn) flush() error {
	if c.out.Len() == 0 || c.ending == finished {
		return nil
	}
	if now := time.Now(); c.deadline.Sub(now) < writeTimeout/2 { // not each time: it costs as much as a small write
		c.deadline = now.Add(writeTimeout)
		if err := c.net.SetWriteDeadline(c.deadline); err != nil {
			return err
		}
	}
	_, err := c.net.Write(c.out.Bytes())
	c.out.Reset()
	if err != nil {
		_ = c.net.Close()
	}
	return err
}
