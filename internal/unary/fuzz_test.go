package unary_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"sallyport/internal/unary"
)

// FuzzAnyBytesAreTaken holds that, whatever a peer sends after the preface or instead of it, nothing panics, and that the
// connection ends with all that ran for it: even if the peer never closes it, when it is old. Time is synctest's, which fails a
// test that leaves a goroutine.
func FuzzAnyBytesAreTaken(f *testing.F) {
	for _, frames := range sensible() {
		f.Add(true, false, frames)
		f.Add(true, true, frames)
		f.Add(false, false, append([]byte(http2.ClientPreface), frames...))
	}
	f.Add(false, false, []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	f.Fuzz(func(t *testing.T, preface, late bool, sent []byte) {
		if preface {
			sent = append([]byte(http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"), sent...)
		}
		synctest.Test(t, func(t *testing.T) {
			o := options()
			o.ConnectionAge = time.Minute
			l := newPipes()
			serveOn(t, unary.New(handlers(map[string]unary.Handler{
				methodLater: func(context.Context, []byte) ([]byte, unary.Later, error) {
					return nil, func(ctx context.Context) ([]byte, error) {
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
						return make([]byte, 1<<10), ctx.Err()
					}, nil
				},
			}), o), l)
			conn := l.connect(t)
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = io.Copy(io.Discard, conn)
			}()
			half := len(sent) / 2 // so that it comes in two pieces, the second perhaps when the end was announced
			_, _ = conn.Write(sent[:half])
			if late {
				time.Sleep(o.ConnectionAge + o.ConnectionAge/5)
			}
			_, _ = conn.Write(sent[half:])
			select {
			case <-over:
			case <-time.After(3 * o.ConnectionAge):
				t.Error("the connection did not end")
			}
		})
	})
}

// sensible are what peers send that mean it, and some that do not: what the fuzzer changes.
func sensible() [][]byte {
	var block, out bytes.Buffer
	encoder, framer := hpack.NewEncoder(&block), http2.NewFramer(&out, nil)
	framer.AllowIllegalWrites = true
	head := func(id uint32, method string, end bool, more ...string) {
		block.Reset()
		fields := append([]string{":method", "POST", ":scheme", "http", ":path", method, "content-type", "application/grpc", "te", "trailers"}, more...)
		for i := 0; i < len(fields); i += 2 {
			_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true})
	}
	whole := message([]byte("hello"))
	var all [][]byte
	for _, write := range []func(){
		func() { // calls
			head(1, methodNow, false, "grpc-timeout", "5S")
			_ = framer.WriteData(1, true, whole)
			head(3, methodLater, false, "content-length", "10")
			_ = framer.WriteData(3, true, whole)
			_ = framer.WritePing(false, [8]byte{1})
		},
		func() { // in pieces, and given up
			head(1, methodLater, false)
			_ = framer.WriteData(1, false, whole[:3])
			head(3, methodLater, false)
			_ = framer.WriteDataPadded(1, true, whole[3:], make([]byte, 9))
			_ = framer.WriteRSTStream(1, http2.ErrCodeCancel)
			_ = framer.WriteData(3, true, whole)
			_ = framer.WriteRSTStream(3, http2.ErrCodeCancel)
		},
		func() { // little room
			_ = framer.WriteSettings(initialWindow(3))
			head(1, methodNow, false)
			_ = framer.WriteData(1, true, whole)
			head(3, methodLater, false)
			_ = framer.WriteData(3, true, whole)
			_ = framer.WriteSettings(initialWindow(0), http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			_ = framer.WriteWindowUpdate(1, 4)
			_ = framer.WriteWindowUpdate(0, 9)
			_ = framer.WriteSettings(initialWindow(99))
		},
		func() { // trailers, and headers in pieces
			head(1, methodNow, false)
			_ = framer.WriteData(1, false, whole)
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0, 1, 'x', 1, 'y'}, EndStream: true, EndHeaders: true})
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x83, 0x86}, Priority: http2.PriorityParam{StreamDep: 1}})
			_ = framer.WriteContinuation(3, true, []byte{0x84})
			_ = framer.WriteData(3, true, nil)
			_ = framer.WritePriority(5, http2.PriorityParam{StreamDep: 5})
		},
		func() { // the end
			head(1, methodLater, false)
			_ = framer.WritePing(true, [8]byte{'d', 'r', 'a', 'i', 'n'})
			_ = framer.WriteGoAway(0, http2.ErrCodeNo, []byte("bye"))
			_ = framer.WriteData(1, true, whole)
			_ = framer.WriteRawFrame(99, 1, 1, []byte("unknown"))
		},
		func() { // refused
			head(1, "/other", true)
			head(3, methodNow, false)
			_ = framer.WriteData(3, false, []byte{0, 0xff, 0xff, 0xff, 0xff})
			_ = framer.WriteData(3, true, whole)
			head(5, methodNow, false)
			_ = framer.WriteData(5, true, []byte{1, 0, 0, 0, 0})
			head(7, methodNow, true, "connection", "close")
			head(2, methodNow, true)
		},
	} {
		out.Reset()
		block.Reset()
		encoder = hpack.NewEncoder(&block)
		write()
		all = append(all, bytes.Clone(out.Bytes()))
	}
	return all
}
