package unary

import (
	"golang.org/x/net/http2"
)

// This file keeps account of streams and of what the peer takes. Everything here wants c.mu.

const (
	spareStreams = 32
	spareBody    = 4 << 10 // bytes: a check that comes in pieces, or an answer
	maxSettings  = 100     // of one frame; there are seven
)

func (c *conn) newStream() *stream {
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	return &stream{}
}

// gaveUp ends a call that the peer does not wait for any more.
func (c *conn) gaveUp(id uint32) error {
	if id > c.last {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if s := c.streams[id]; s != nil {
		c.forget(s)
	}
	return nil
}

// reset ends a call that the peer has broken.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	_ = c.framer.WriteRSTStream(id, code)
	if s := c.streams[id]; s != nil {
		c.forget(s)
	}
}

// forget ends a stream, and what runs for it.
func (c *conn) forget(s *stream) {
	s.dead = true
	delete(c.streams, s.id)
	c.release(s)
	if s.cancel != nil {
		s.cancel() // what runs for it still holds it, and recycles it
		c.givenUp++
	} else {
		c.recycle(s)
	}
	c.finishIfIdle()
}

// release lets go of a message.
func (c *conn) release(s *stream) {
	c.buffered -= len(s.body)
	c.server.buffered.Add(-int64(len(s.body)))
	s.body = s.body[:0]
}

// recycle keeps a stream's memory for another.
func (c *conn) recycle(s *stream) {
	if len(c.free) < spareStreams && cap(s.body) <= spareBody && cap(s.answer) <= spareBody {
		*s = stream{body: s.body[:0], answer: s.answer[:0], dead: true}
		c.free = append(c.free, s)
	}
}

func (c *conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	n := int64(f.Increment)
	if f.StreamID == 0 {
		waited := c.window == 0 // else what waits waits for its own window
		if c.window += n; c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		if waited {
			c.sendAll()
		}
		return nil
	}
	if f.StreamID > c.last {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return nil
	}
	if s.window += n; c.initial+s.window > maxWindow {
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeFlowControl}
	}
	c.widest = max(c.widest, s.window)
	c.send(s)
	return nil
}

func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > maxSettings {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	before := c.initial
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingHeaderTableSize:
			c.encoder.SetMaxDynamicTableSize(min(s.Val, headerTable))
		case http2.SettingInitialWindowSize:
			return c.resize(int64(s.Val))
		default: // frames are never longer than any peer must take, and nothing else concerns a server's answers
		}
		return nil
	})
	if err != nil {
		return err
	}
	_ = c.framer.WriteSettingsAck()
	if c.initial > before {
		c.sendAll()
	}
	return nil
}

// resize changes the windows of all streams, which count from the initial one: they may go below zero, but not above their
// bound (RFC 9113, 6.9.2). All of them are looked at only if one may have passed it, or it would cost a peer nothing to
// have them looked at again and again.
func (c *conn) resize(initial int64) error {
	c.initial = initial
	if initial+c.widest <= maxWindow {
		return nil
	}
	c.widest = 0
	for _, s := range c.streams {
		c.widest = max(c.widest, s.window)
	}
	if initial+c.widest > maxWindow {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	return nil
}

// sendAll sends what had found no room.
func (c *conn) sendAll() {
	for _, s := range c.streams {
		c.send(s)
	}
}
