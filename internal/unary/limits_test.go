package unary_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"sallyport/internal/unary"
)

// Here the peer asks for more than it gets: each bound, and that what is within it is untouched.

// mostStreams is what the server says that it takes at a time.
const mostStreams = 1024

// held serves methodLater with calls that wait for release, whatever their callers do, and counts those that run.
func held() (s *unary.Server, running, most *atomic.Int64, release func()) {
	running, most = &atomic.Int64{}, &atomic.Int64{}
	free := make(chan struct{})
	return unary.New(handlers(map[string]unary.Handler{
		methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
			return nil, func(context.Context) ([]byte, error) {
				now := running.Add(1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				<-free
				running.Add(-1)
				return nil, nil
			}, nil
		},
	}), options()), running, most, func() { close(free) }
}

func TestOneStreamMoreThanThereMayBeIsRefused(t *testing.T) {
	server, _, _, release := held()
	p := dial(t, server)
	ids := make([]uint32, mostStreams)
	for i := range ids {
		ids[i] = uint32(2*i + 1)
		p.ask(ids[i], methodLater, nil)
	}
	for _, f := range p.roundTrip() {
		if f.Type == http2.FrameRSTStream {
			t.Errorf("stream %d was refused: %v", f.StreamID, f.code)
		}
	}
	const more = 2*mostStreams + 1
	p.call(more, methodNow, true)
	if a := p.answers(more)[more]; a.refused != http2.ErrCodeRefusedStream {
		t.Errorf("one more was answered with %+v", a)
	}
	release()
	for id, a := range p.answers(ids...) {
		if a.fields["grpc-status"] != "0" {
			t.Errorf("stream %d: %+v", id, a)
		}
	}
	p.works(more + 2)
}

// CVE-2023-44487: streams that are reset as soon as they are begun are no more at a time than others.
func TestCallsThatAreResetCountUntilTheyEnd(t *testing.T) {
	server, running, most, release := held()
	p := dial(t, server)
	const calls = 3 * mostStreams
	for i := range uint32(calls) {
		p.ask(2*i+1, methodLater, nil)
		p.must(p.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
	}
	refused := 0
	for _, f := range p.roundTrip() {
		if f.Type == http2.FrameRSTStream && f.code == http2.ErrCodeRefusedStream {
			refused++
		}
	}
	if refused != calls-mostStreams {
		t.Errorf("%d calls were refused of %d", refused, calls)
	}
	release()
	eventually(t, "all have ended", func() bool { return running.Load() == 0 })
	if n := most.Load(); n > mostStreams {
		t.Errorf("%d ran at a time", n)
	}
	for id := uint32(2*calls + 1); ; id += 2 { // the last to end leaves its place a little later
		p.ask(id, methodNow, nil)
		if p.answers(id)[id].refused == 0 {
			return
		}
	}
}

func TestHeadersHaveALimit(t *testing.T) {
	const limit = 16 << 10
	server := unary.New(handlers(nil), options())
	t.Run("many are refused together", func(t *testing.T) {
		p := dial(t, server)
		var many []string
		for i := range limit / 100 {
			many = append(many, fmt.Sprintf("x-%d", i), strings.Repeat("x", 80))
		}
		p.call(1, methodNow, true, many...)
		if a := p.answers(1)[1]; a.fields["grpc-status"] != "8" || !strings.Contains(a.fields["grpc-message"], "headers") {
			t.Errorf("%+v", a)
		}
		p.works(3)
	})
	t.Run("far too many end the connection", func(t *testing.T) {
		p := dial(t, server)
		p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.encode(":method", "POST")}))
		for range 10 {
			if p.WriteContinuation(1, false, p.encode("x", strings.Repeat("~", 5000))) != nil {
				break
			}
		}
		if code := p.fails(); code != http2.ErrCodeEnhanceYourCalm {
			t.Errorf("%v", code)
		}
	})
	// CVE-2024-27316
	t.Run("those without an end end the connection", func(t *testing.T) {
		p := dial(t, server)
		p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.encode(":method", "POST")}))
		for range 1000 {
			if p.WriteContinuation(1, false, nil) != nil {
				break
			}
		}
		if code := p.fails(); code != http2.ErrCodeEnhanceYourCalm {
			t.Errorf("%v", code)
		}
	})
	t.Run("a block of several frames is one", func(t *testing.T) {
		p := dial(t, server)
		block := clone(p.encode(":method", "POST", ":scheme", "http", ":path", "/test.Service/Other", "content-type", "application/grpc"))
		p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:7], EndStream: true}))
		p.must(p.WriteContinuation(1, false, block[7:12]))
		p.must(p.WriteContinuation(1, true, block[12:]))
		if a := p.answers(1)[1]; a.fields["grpc-status"] != "12" {
			t.Errorf("%+v", a)
		}
	})
}

func TestMessagesOnTheirWayHaveALimitTogether(t *testing.T) {
	const limit, part = 8 << 20, maxRequest - 1<<10
	p := dial(t, unary.New(handlers(nil), options()), initialWindow(1<<20))
	p.must(p.WriteWindowUpdate(0, 1<<30))
	half := message(make([]byte, maxRequest))[:part]
	var ids []uint32
	for id := uint32(1); len(ids)*part <= limit; id += 2 {
		p.call(id, methodNow, false)
		for rest := half; len(rest) > 0; rest = rest[min(maxFrame, len(rest)):] {
			p.must(p.WriteData(id, false, rest[:min(maxFrame, len(rest))]))
		}
		ids = append(ids, id)
	}
	last := ids[len(ids)-1]
	if a := p.answers(last)[last]; a.fields["grpc-status"] != "8" {
		t.Errorf("one too many was answered by %+v", a)
	}
	for _, id := range ids[:len(ids)-1] {
		p.must(p.WriteData(id, true, make([]byte, prefixed(maxRequest)-part)))
	}
	for id, a := range p.answers(ids[:len(ids)-1]...) {
		if a.fields["grpc-status"] != "0" {
			t.Errorf("stream %d: %+v", id, a)
		}
	}
	p.works(last + 2)
}

func TestMessagesOnTheirWayHaveALimitOnAllConnections(t *testing.T) {
	const limit, part = 32 << 20, maxRequest - 1<<10
	l := newPipes()
	serveOn(t, unary.New(handlers(nil), options()), l)
	half := message(make([]byte, maxRequest))[:part]
	send := func(p *rawPeer, id uint32) {
		p.call(id, methodNow, false)
		for rest := half; len(rest) > 0; rest = rest[min(maxFrame, len(rest)):] {
			p.must(p.WriteData(id, false, rest[:min(maxFrame, len(rest))]))
		}
	}
	const each = 5 << 20 / part // far below what one connection may have
	var crowd []*rawPeer
	for range limit / part / each {
		p := l.dial(t)
		for i := range uint32(each) {
			send(p, 2*i+1)
		}
		crowd = append(crowd, p)
	}
	p := l.dial(t, initialWindow(1<<20)) // for an answer as long as its request
	p.must(p.WriteWindowUpdate(0, 1<<20))
	for i := range uint32(each) {
		send(p, 2*i+1)
	}
	if a := p.answers(2*each - 1)[2*each-1]; a.fields["grpc-status"] != "8" {
		t.Errorf("one too many was answered by %+v", a)
	}
	for _, q := range crowd {
		_ = q.conn.Close()
	}
	id := uint32(2*each - 1)
	eventually(t, "there is room again", func() bool {
		id += 2
		send(p, id)
		p.must(p.WriteData(id, true, make([]byte, prefixed(maxRequest)-part)))
		return p.answers(id)[id].fields["grpc-status"] == "0"
	})
}

func TestMessagesThatHaveArrivedDoNotCountAsOnTheirWay(t *testing.T) {
	const limit, size = 8 << 20, maxRequest
	server, _, _, release := held()
	defer release()
	p := dial(t, server)
	for i := range uint32(limit/size + 10) {
		p.ask(2*i+1, methodLater, make([]byte, size))
	}
	for _, f := range p.roundTrip() {
		if f.Type == http2.FrameHeaders {
			t.Errorf("stream %d was answered by %v", f.StreamID, f.fields)
		}
	}
}

func TestAConnectionThatHasEndedLeavesItsPlace(t *testing.T) {
	const most = 1024
	l := newPipes()
	serveOn(t, unary.New(handlers(nil), options()), l)
	for range most + 1 {
		client, server := net.Pipe()
		l.conns <- server
		_ = client.Close()
	}
	l.dial(t).works(1)
}

func prefixed(n int) int { return n + 5 }

// Where time is synctest's, a wait is as long as it says and takes no time.

func TestAPeerThatSaysNothingIsGivenUp(t *testing.T) {
	for name, says := range map[string]string{
		"nothing":               "",
		"a part of the preface": http2.ClientPreface[:10],
		"all but its settings":  http2.ClientPreface,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				serveOn(t, unary.New(handlers(nil), options()), l)
				p := newPeer(t, l.connect(t))
				began := time.Now()
				if _, err := p.conn.Write([]byte(says)); err != nil {
					t.Fatal(err)
				}
				p.isOver()
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("after %s", took)
				}
			})
		})
	}
}

func TestAPeerThatDoesNotReadIsGivenUp(t *testing.T) {
	ping := "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"
	for name, sends := range map[string]string{
		"not even the server's settings": "",
		"nor the answers to its pings":   http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + strings.Repeat(ping, 1<<20), // CVE-2019-9512
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				serveOn(t, unary.New(handlers(nil), options()), l)
				conn := l.connect(t)
				if sends != "" { // its own settings let the server begin
					if _, err := conn.Read(make([]byte, 1<<10)); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				written, err := conn.Write([]byte(sends + " "))
				if err == nil {
					t.Fatal("the server took all that was sent")
				}
				if took := time.Since(began); took < 5*time.Second || took > 10*time.Second { // the deadline is not set anew for each write
					t.Errorf("after %s", took)
				}
				if most := 64 << 10; written > most {
					t.Errorf("it took %d bytes, and wrote as many to memory", written)
				}
			})
		})
	}
}
