package checkserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"sallyport/gateway"
)

// codec is gRPC's own for protobuf, but for the two messages of a check: a question is read here (see wire.go), and an
// answer is in its wire form already.
type codec struct {
	encoding.CodecV2
	names gateway.Headers
}

func newCodec(names gateway.Headers) codec {
	return codec{encoding.GetCodecV2(proto.Name), names}
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(**question)
	if !ok {
		return c.CodecV2.Unmarshal(data, v) //nolint:wrapcheck // gRPC's own
	}
	wire := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer wire.Free()
	*into = decode(wire.ReadOnlyData(), c.names)
	return nil
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(answer); ok {
		return mem.BufferSlice{mem.SliceBuffer(a)}, nil
	}
	return c.CodecV2.Marshal(v) //nolint:wrapcheck // gRPC's own
}
