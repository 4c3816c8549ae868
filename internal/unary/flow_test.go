package unary_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"golang.org/x/net/http2"

	"sallyport/internal/unary"
)

// Here the peer is our own, frame by frame: flow control, and the frames of a call (RFC 9113, 5.2, 6.9 and 8.1).

func initialWindow(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n}
}

// sizes are those of the pieces of a stream's answer.
func sizes(frames []frame) []int {
	var out []int
	for _, f := range frames {
		if f.Type == http2.FrameData {
			out = append(out, len(f.data))
		}
	}
	return out
}

func TestAnAnswerComesInPiecesAsThePeerHasRoom(t *testing.T) {
	for _, method := range []string{methodNow, methodLater} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			p := dial(t, unary.New(handlers(nil), options()), initialWindow(10))
			request := []byte("an answer of thirty-five characters") // and five before it
			p.ask(1, method, request)
			var got []byte
			p.of(1) // the headers wait for nothing
			for step, c := range []struct {
				send func() error
				want int // bytes of the answer that this lets through
			}{
				{func() error { return nil }, 10},
				{func() error { return p.WriteSettings(initialWindow(0)) }, 0}, // now it is 10 below zero
				{func() error { return p.WriteWindowUpdate(1, 10) }, 0},        // and now zero
				{func() error { return p.WriteWindowUpdate(1, 7) }, 7},
				{func() error { return p.WriteWindowUpdate(0, 100) }, 0}, // the connection's is not this one's
				{func() error { return p.WriteSettings(initialWindow(1)) }, 1},
				{func() error { return p.WriteSettings(initialWindow(1000)) }, 22},
			} {
				p.must(c.send())
				for arrived := 0; arrived < c.want; {
					f := p.of(1)
					got = append(got, f.data...)
					arrived += len(f.data)
				}
				if more := sizes(p.roundTrip()); len(more) > 0 && step < 6 {
					t.Fatalf("step %d: %v bytes more than there is room for", step, more)
				}
			}
			if !bytes.Equal(got, message(request)) {
				t.Errorf("got %q", got)
			}
			p.works(3)
		})
	}
}

func TestTheConnectionsWindowBoundsAllAnswersTogether(t *testing.T) {
	p := dial(t, unary.New(handlers(nil), options()), initialWindow(1<<20))
	for id := uint32(1); id <= 5; id += 2 {
		p.ask(id, methodNow, make([]byte, 40_000))
	}
	sum := func() (n int) {
		for _, size := range sizes(p.roundTrip()) {
			n += size
		}
		return n
	}
	if got := sum(); got != 65535 {
		t.Errorf("%d bytes came at first", got)
	}
	p.must(p.WriteWindowUpdate(0, 10))
	if got := sum(); got != 10 {
		t.Errorf("%d bytes came for 10", got)
	}
	p.must(p.WriteWindowUpdate(0, 1<<20))
	if got := sum(); got != 3*40_005-65545 {
		t.Errorf("%d bytes came at last", got)
	}
}

func TestAWindowMayNotOverflow(t *testing.T) {
	server := unary.New(handlers(nil), options())
	for name, send := range map[string]func(p *rawPeer) error{
		"the connection's":             func(p *rawPeer) error { return p.WriteWindowUpdate(0, 1<<31-1) },
		"one of a stream, by settings": func(p *rawPeer) error { return p.WriteSettings(initialWindow(1<<31 - 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := dial(t, server, initialWindow(0))
			p.call(1, methodNow, false)
			p.must(p.WriteWindowUpdate(1, 1))
			p.must(send(p))
			if code := p.fails(); code != http2.ErrCodeFlowControl {
				t.Errorf("it ended with %v", code)
			}
		})
	}
	t.Run("one of a stream", func(t *testing.T) {
		p := dial(t, server, initialWindow(1))
		p.call(1, methodNow, false)
		p.must(p.WriteWindowUpdate(1, 1<<31-1))
		if a := p.answers(1)[1]; a.refused != http2.ErrCodeFlowControl {
			t.Errorf("the stream got %+v", a)
		}
		p.must(p.WriteSettings(initialWindow(100)))
		p.works(3)
	})
}

func TestMessagesOfManyFramesMayBeInterleaved(t *testing.T) {
	const calls = 10
	p := dial(t, unary.New(handlers(nil), options()))
	left := map[uint32][]byte{}
	ids := []uint32{}
	for i := range calls {
		id := uint32(2*i + 1)
		method := []string{methodNow, methodLater}[i%2]
		p.call(id, method, false, "content-length", strconv.Itoa(5+len(body(id))))
		left[id], ids = message(body(id)), append(ids, id)
	}
	for len(left) > 0 {
		for id, b := range left {
			n := min(len(b), int(id)%7) // none at all of some
			if id%7 == 0 {
				n = min(len(b), 1000)
			}
			p.must(p.WriteDataPadded(id, n == len(b), b[:n], make([]byte, n%3)))
			if left[id] = b[n:]; n == len(b) {
				delete(left, id)
			}
		}
	}
	for id, a := range p.answers(ids...) {
		if !bytes.Equal(a.body, message(body(id))) || a.fields["grpc-status"] != "0" {
			t.Errorf("stream %d: %d bytes, %v, %v", id, len(a.body), a.fields, a.refused)
		}
	}
}

func body(id uint32) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d.", id), 100) }

func TestTrailersMayEndAMessage(t *testing.T) {
	server := unary.New(handlers(nil), options())
	for name, c := range map[string]struct {
		end  bool
		more []string
		want http2.ErrCode
	}{
		"trailers":                      {true, []string{"x-checksum", "1"}, http2.ErrCodeNo},
		"trailers that end nothing":     {false, []string{"x-checksum", "1"}, http2.ErrCodeProtocol},
		"trailers with a pseudo-header": {true, []string{":path", "/"}, http2.ErrCodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			p := dial(t, server)
			for i, method := range []string{methodNow, methodLater} {
				id := uint32(4*i + 1)
				p.call(id, method, false)
				p.must(p.WriteData(id, false, message([]byte("x"))))
				p.headers(id, c.end, c.more...)
				if a := p.answers(id)[id]; a.refused != c.want || c.want == http2.ErrCodeNo && !bytes.Equal(a.body, message([]byte("x"))) {
					t.Errorf("%s: %+v", method, a)
				}
				p.works(id + 2)
			}
		})
	}
}

// A server need not make room for padding that it was sent (RFC 9113, 6.9.1: padding counts). A stream has room for the
// largest message and a kilobyte more, and never gets more.
func TestPaddingCountsAsFlow(t *testing.T) {
	t.Run("with a little, the largest message arrives", func(t *testing.T) {
		p := dial(t, unary.New(handlers(nil), options()), initialWindow(1<<20))
		p.must(p.WriteWindowUpdate(0, 1<<20))
		p.call(1, methodNow, false)
		whole := message(make([]byte, maxRequest))
		for len(whole) > 0 {
			n := min(len(whole), 16000)
			p.must(p.WriteDataPadded(1, n == len(whole), whole[:n], make([]byte, 99)))
			whole = whole[n:]
		}
		if a := p.answers(1)[1]; a.fields["grpc-status"] != "0" {
			t.Errorf("%v, %v", a.fields, a.refused)
		}
	})
	t.Run("with too much, the call alone is ended", func(t *testing.T) {
		p := dial(t, unary.New(handlers(nil), options()))
		p.call(1, methodNow, false)
		for range (maxRequest+1<<10)/256 + 1 { // 255 bytes and their length
			p.must(p.WriteDataPadded(1, false, nil, make([]byte, 255)))
		}
		if a := p.answers(1)[1]; a.refused != http2.ErrCodeFlowControl {
			t.Errorf("%v, %v", a.fields, a.refused)
		}
		p.works(3)
	})
}

// A peer cannot know yet that a call was refused while it still sends what belongs to it (RFC 9113, 5.1).
func TestWhatComesAfterARefusalCostsTheCallAlone(t *testing.T) {
	p := dial(t, unary.New(handlers(nil), options()))
	p.call(1, methodNow, false)
	p.must(p.WriteData(1, false, []byte{0, 0xff, 0xff, 0xff, 0xff})) // is refused at once
	if a := p.answers(1)[1]; a.fields["grpc-status"] != "8" {
		t.Errorf("%+v", a)
	}
	if f := p.of(1); f.Type != http2.FrameRSTStream || f.code != http2.ErrCodeNo {
		t.Errorf("it was not told that it need not send the rest: %+v", f)
	}
	p.must(p.WriteData(1, false, []byte("more of it")))
	p.must(p.WriteWindowUpdate(1, 1))
	p.headers(1, true, "x-checksum", "1")
	p.must(p.WriteRSTStream(1, http2.ErrCodeCancel))
	p.works(3)
}
