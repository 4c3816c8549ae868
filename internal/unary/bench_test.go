package unary_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"

	"sallyport/internal/unary"
)

// BenchmarkCall is what a call costs with this server and with grpc-go's, over as many connections as an Envoy of sixteen
// threads has. The client is in the same process, does as little as it can, and is the same for both.
func BenchmarkCall(b *testing.B) {
	for _, inFlight := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d at a time/unary", inFlight), func(b *testing.B) {
			benchmarkCalls(b, serve(b, unary.New(handlers(nil), options())).listener.Addr(), inFlight)
		})
		b.Run(fmt.Sprintf("%d at a time/grpc-go", inFlight), func(b *testing.B) {
			benchmarkCalls(b, serveGRPC(b), inFlight)
		})
	}
}

// serveGRPC serves methodNow with grpc-go.
func serveGRPC(b *testing.B) net.Addr {
	l := listen(b)
	server := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Service", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Now", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var request []byte
			err := decode(&request)
			return &request, err
		}}},
	}, nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	b.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return l.Addr()
}

// benchmarkCalls shares the calls out among connections, each of which sends so many together and waits for all answers.
func benchmarkCalls(b *testing.B, addr net.Addr, inFlight int) {
	const connections = 16
	clients := make([]*lightClient, connections)
	for i := range clients {
		clients[i] = newLightClient(b, addr, inFlight)
		if err := clients[i].calls(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	ended := make(chan error, connections)
	for _, c := range clients {
		go func() {
			for range (b.N + connections*inFlight - 1) / (connections * inFlight) {
				if err := c.calls(); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range clients {
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// lightClient sends the same calls again and again: of their bytes only the streams' ids change.
type lightClient struct {
	conn   net.Conn
	in     *bufio.Reader
	sent   []byte
	frames []int // where each begins
	stream uint32
}

const (
	frameHead  = 9
	benchBytes = 1 << 10 // about a check
)

func newLightClient(b *testing.B, addr net.Addr, inFlight int) *lightClient {
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	c := &lightClient{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), stream: 1}
	var block, out bytes.Buffer
	encoder, framer := hpack.NewEncoder(&block), http2.NewFramer(&out, nil)
	encode := func() []byte {
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"},
			{Name: ":scheme", Value: "http"},
			{Name: ":path", Value: methodNow},
			{Name: ":authority", Value: "test"},
			{Name: "te", Value: "trailers"},
			{Name: "content-type", Value: "application/grpc"},
			{Name: "grpc-timeout", Value: "5S"},
		} {
			_ = encoder.WriteField(f)
		}
		return block.Bytes()
	}
	write := func(headers []byte) {
		c.frames = append(c.frames, out.Len())
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers, EndHeaders: true})
		c.frames = append(c.frames, out.Len())
		_ = framer.WriteData(1, true, message(make([]byte, benchBytes)))
	}
	out.WriteString(http2.ClientPreface)
	_ = framer.WriteSettings(initialWindow(1 << 20))
	_ = framer.WriteWindowUpdate(0, 1<<30)
	write(encode())
	c.sent = out.Bytes()
	if err := c.calls(); err != nil {
		b.Fatal(err)
	}
	out.Reset()
	c.frames = nil
	headers := encode() // all of it is in the server's table by now: these bytes always mean the same
	for range inFlight {
		write(headers)
	}
	_ = framer.WriteWindowUpdate(0, uint32(inFlight*(benchBytes+5))) // for their answers
	c.sent = out.Bytes()
	return c
}

// calls sends all calls, and waits for their answers.
func (c *lightClient) calls() error {
	for i := 0; i < len(c.frames); i += 2 {
		binary.BigEndian.PutUint32(c.sent[c.frames[i]+5:], c.stream)
		binary.BigEndian.PutUint32(c.sent[c.frames[i+1]+5:], c.stream)
		c.stream += 2
	}
	if _, err := c.conn.Write(c.sent); err != nil {
		return err
	}
	for missing, received := len(c.frames)/2, 0; missing > 0; {
		head, err := c.in.Peek(frameHead)
		if err != nil {
			return err
		}
		kind, length := http2.FrameType(head[3]), int(head[0])<<16|int(head[1])<<8|int(head[2])
		if ends := http2.Flags(head[4]).Has(http2.FlagHeadersEndStream); ends && kind == http2.FrameHeaders {
			missing--
		}
		if kind == http2.FrameData {
			received += length
		}
		if _, err := c.in.Discard(frameHead + length); err != nil {
			return err
		}
		if want := len(c.frames) / 2 * (benchBytes + 5); missing == 0 && received != want {
			return fmt.Errorf("%d bytes came back, not %d: %w", received, want, io.ErrUnexpectedEOF)
		}
	}
	return nil
}
