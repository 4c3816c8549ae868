package unary

import (
	"io"
	"time"

	"golang.org/x/net/http2"
)

// drainPing is answered once the peer has read that it should begin no more calls.
var drainPing = [8]byte{'d', 'r', 'a', 'i', 'n'}

// drain ends the connection without a call lost: the peer is told to begin no more; when it has heard that, the highest
// call is known; when that and all before it are answered, the connection is closed (RFC 9113, 6.8).
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != serving {
		return
	}
	c.ending = announced
	if c.framer.WriteGoAway(maxWindow, http2.ErrCodeNo, nil) == nil && c.framer.WritePing(false, drainPing) == nil {
		_ = c.flush() // the goroutine that reads finds the same error
	}
}

// end closes the connection after the grace, whatever is left.
func (c *conn) end(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
	case <-timer.C:
		c.cancel()
	}
}

// finishIfIdle wants c.mu.
func (c *conn) finishIfIdle() {
	if c.ending == closing && len(c.streams) == 0 {
		c.finish()
	}
}

// fail says that the connection is broken, and what the peer did wrong.
func (c *conn) fail(code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.framer.WriteGoAway(min(c.last, c.told), code, nil) == nil { // never more than it was told (RFC 9113, 6.8)
		c.finish()
	}
}

// finish sends what is left and nothing after it; the goroutine that reads goes on to lingering. It wants c.mu.
func (c *conn) finish() {
	err := c.flush()
	c.ending = finished
	if half, ok := c.net.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(linger))
		return
	}
	_ = c.net.Close()
}

// lingering waits for the peer to close: a connection that is closed with bytes unread is reset, and the peer may then lose
// the last answers.
func (c *conn) lingering() {
	c.mu.Lock()
	orderly := c.ending == finished
	c.mu.Unlock()
	if orderly {
		_, _ = io.Copy(io.Discard, c.net)
	}
}

// leave takes what had not arrived whole off the server's account.
func (c *conn) leave() { c.server.buffered.Add(-int64(c.buffered)) }
