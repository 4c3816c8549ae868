package unary_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sallyport/internal/unary"
)

// These tests run one after another, so that noneLeft sees the goroutines of no other.

// waits is a server whose calls to methodLater say that they have begun, and end with their context, or when they are let go.
type waits struct {
	*unary.Server
	began chan struct{}
	free  chan struct{}
}

func newWaits(o unary.Options) *waits {
	w := &waits{began: make(chan struct{}, mostStreams), free: make(chan struct{})}
	w.Server = unary.New(handlers(map[string]unary.Handler{
		methodLater: func(_ context.Context, request []byte) ([]byte, unary.Later, error) {
			kept := clone(request)
			return nil, func(ctx context.Context) ([]byte, error) {
				w.began <- struct{}{}
				select {
				case <-w.free:
					return kept, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}, nil
		},
	}), o)
	return w
}

func TestWhenTheServerEndsItsCallsAreAnsweredAndNoneIsTaken(t *testing.T) {
	const calls = 20
	w := newWaits(options())
	r := serve(t, w.Server)
	conn := r.client(t)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			request := fmt.Append(nil, i)
			if answer, err := call(t.Context(), conn, methodLater, request); err != nil || !bytes.Equal(answer, request) {
				t.Errorf("what was begun was answered by %q, %v", answer, err)
			}
		})
	}
	for range calls {
		<-w.began
	}
	r.stop()
	eventually(t, "no connection is accepted", func() bool {
		c, err := net.Dial("unix", r.listener.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	select {
	case err := <-r.ended:
		t.Fatalf("Serve = %v while calls run", err)
	default:
	}
	close(w.free)
	all.Wait()
	if err := <-r.ended; err != nil {
		t.Errorf("Serve = %v", err)
	}
	r.ended <- nil
	noneLeft(t)
}

func TestCallsThatTakeLongerThanDrainAreCut(t *testing.T) {
	o := options()
	o.Drain = 10 * time.Millisecond
	w := newWaits(o)
	r := serve(t, w.Server)
	answered := make(chan error, 1)
	conn := r.client(t)
	go func() { _, err := call(t.Context(), conn, methodLater, nil); answered <- err }()
	<-w.began
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Serve = %v", err)
	}
	r.ended <- nil
	if err := <-answered; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("the call was answered by %v", err)
	}
	noneLeft(t)
}

func TestNoCallIsLostWhenConnectionsAreOld(t *testing.T) {
	const callers = 8
	o := options()
	o.ConnectionAge = 20 * time.Millisecond
	r := serve(t, unary.New(handlers(nil), o))
	conn := r.client(t)
	var all sync.WaitGroup
	var enough atomic.Bool
	for i := range callers {
		all.Go(func() {
			for !enough.Load() {
				if _, err := call(t.Context(), conn, []string{methodNow, methodLater}[i%2], []byte("x")); err != nil {
					t.Errorf("a call was lost: %v", err)
					return
				}
			}
		})
	}
	eventually(t, "the client has come three times", func() bool { return r.listener.accepted.Load() >= 3 })
	enough.Store(true)
	all.Wait()
	_ = conn.Close()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Serve = %v", err)
	}
	r.ended <- nil
	noneLeft(t)
}

// Frame by frame, as RFC 9113, 6.8 has it: a call that was on its way when the end was announced is answered.
func TestAnOldConnectionIsEndedInTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.ConnectionAge = time.Minute
		w := newWaits(o)
		p := dial(t, w.Server)
		p.patience = 2 * o.ConnectionAge
		began := time.Now()
		p.ask(1, methodLater, []byte("x"))
		announced := p.until("a GOAWAY", func(f frame) bool { return f.Type == http2.FrameGoAway })
		if age := time.Since(began); announced.last != 1<<31-1 || announced.code != http2.ErrCodeNo || age < 54*time.Second || age > 66*time.Second {
			t.Errorf("after %s came %+v", age, announced)
		}
		ping := p.until("a ping", func(f frame) bool { return f.Type == http2.FramePing })
		if ping.Flags.Has(http2.FlagPingAck) {
			t.Error("it answered what it was not asked")
		}
		// the first call ended long ago, with its deadline
		p.ask(3, methodLater, []byte("on its way"))
		<-w.began
		<-w.began
		p.must(p.WritePing(true, [8]byte{'d', 'r', 'a', 'i', 'n'}))
		if known := p.until("a GOAWAY", func(f frame) bool { return f.Type == http2.FrameGoAway }); known.last != 3 || known.code != http2.ErrCodeNo {
			t.Errorf("then came %+v", known)
		}
		p.ask(5, methodNow, nil)
		if a := p.answers(5)[5]; a.refused != http2.ErrCodeRefusedStream {
			t.Errorf("what was begun after the end was answered by %+v", a)
		}
		close(w.free)
		if a := p.answers(3)[3]; !bytes.Equal(a.body, message([]byte("on its way"))) {
			t.Errorf("what was on its way was answered by %+v", a)
		}
		p.isOver()
	})
}

func TestAPeerThatDoesNotHearOfTheEndIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(r *running)
		wanted time.Duration
	}{
		"when the connection is old": {func(*running) {}, time.Hour + time.Minute},
		"when the server ends":       {func(r *running) { r.stop() }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				r := serveOn(t, unary.New(handlers(nil), options()), l)
				p := l.dial(t)
				p.call(1, methodNow, false) // and its message never comes
				p.roundTrip()
				began := time.Now()
				c.end(r)
				for range p.frames { // until its end
				}
				if took := time.Since(began); took > c.wanted+6*time.Minute || took < c.wanted-6*time.Minute {
					t.Errorf("after %s", took)
				}
			})
		})
	}
}

func TestTheEndOfTheServerIsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		r := serveOn(t, unary.New(handlers(nil), options()), l)
		p := l.dial(t)
		p.works(1)
		began := time.Now()
		r.stop()
		p.until("a GOAWAY", func(f frame) bool { return f.Type == http2.FrameGoAway })
		p.must(p.WritePing(true, [8]byte{'d', 'r', 'a', 'i', 'n'}))
		p.isOver()
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAPeerThatGoesAwayEndsWhatRunsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		began := make(chan struct{})
		p := dial(t, unary.New(map[string]unary.Handler{methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
			return nil, func(ctx context.Context) ([]byte, error) {
				close(began)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}, nil
		}}, options()))
		p.ask(1, methodLater, nil)
		<-began
		_ = p.conn.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("its context ended with %v", err)
		}
	})
}

func TestTheLastCallThatIsAnsweredIsNeverALaterOneThanWasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.ConnectionAge = 2 * time.Second
		w := newWaits(o)
		p := dial(t, w.Server)
		p.ask(1, methodLater, nil)
		goaway := func(f frame) bool { return f.Type == http2.FrameGoAway }
		p.until("a GOAWAY", goaway)
		p.must(p.WritePing(true, [8]byte{'d', 'r', 'a', 'i', 'n'}))
		p.until("a GOAWAY", goaway)
		p.ask(3, methodNow, nil) // is refused
		p.must(p.WriteData(5, true, nil))
		if broken := p.until("a GOAWAY", goaway); broken.code != http2.ErrCodeProtocol || broken.last != 1 {
			t.Errorf("%+v", broken)
		}
		p.isOver()
	})
}

// lateListener accepts once more when the server has been told to end.
type lateListener struct {
	*pipes
	end    func()
	server net.Conn
}

func (l *lateListener) Accept() (net.Conn, error) {
	if l.server == nil {
		return nil, errors.New("closed")
	}
	c := l.server
	l.server = nil
	l.end()
	return c, nil
}

func TestAConnectionThatComesAsTheServerEndsIsClosed(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	client, server := net.Pipe()
	if err := unary.New(nil, options()).Serve(ctx, &lateListener{pipes: newPipes(), end: end, server: server}); err != nil {
		t.Errorf("Serve = %v", err)
	}
	_ = client.SetReadDeadline(time.Now().Add(5 * time.Second))
	var timeout net.Error
	if _, err := client.Read(make([]byte, 1)); errors.As(err, &timeout) {
		t.Error("it was left open")
	}
}

func TestServeSaysWhyItCouldNotAccept(t *testing.T) {
	broken := errors.New("broken")
	if err := unary.New(nil, options()).Serve(t.Context(), &failing{newPipes(), broken}); !errors.Is(err, broken) {
		t.Errorf("Serve = %v", err)
	}
}

type failing struct {
	*pipes
	err error
}

func (l *failing) Accept() (net.Conn, error) { return nil, l.err }
