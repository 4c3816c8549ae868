package checkserver

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// What a warm check may allocate. Allocations are counted, not timed: they are the same on any machine.
const (
	maxDecodeAllocs = 4
	maxEncodeAllocs = 2
)

var warm = extauthz.Decision{
	Reason:   extauthz.ReasonAllowed,
	Identity: gateway.Identity{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-x7k2p", KeyID: "0123456789abcdef0123456789abcdef"},
}

// typical is a CheckRequest like those of our Envoy.
func typical(t testing.TB) []byte {
	t.Helper()
	token := make([]byte, 700) // about a key of ours
	for i := range token {
		token[i] = 'a' + byte(i%26) //nolint:mnd // letters
	}
	peer := &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "10.1.2.3", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 43210},
	}}}}
	wire, err := proto.Marshal(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: peer, Destination: peer,
		Request: &authv3.AttributeContext_Request{
			Time: &timestamppb.Timestamp{Seconds: 1, Nanos: 2},
			Http: &authv3.AttributeContext_HttpRequest{
				Id: "1234567890123456789", Method: "POST", Path: "/v1/agents/recall", Host: "memory.example", Scheme: "http", Protocol: "HTTP/1.1", Size: 120,
				HeaderMap: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
					{Key: ":authority", RawValue: []byte("memory.example")},
					{Key: ":path", RawValue: []byte("/v1/agents/recall")},
					{Key: ":method", RawValue: []byte("POST")},
					{Key: ":scheme", RawValue: []byte("http")},
					{Key: "authorization", RawValue: append([]byte("Bearer "), token...)},
					{Key: "x-request-id", RawValue: []byte("0b5d6f0e-3a7c-4a7e-9a3e-2f1f6e8b7c11")},
				}},
			},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func TestAWarmCheckIsReadAndAnsweredWithFewAllocations(t *testing.T) {
	wire, names := typical(t), gateway.DefaultHeaders()
	for _, c := range []struct {
		what string
		most float64
		do   func()
	}{
		{"decode", maxDecodeAllocs, func() { decode(wire, names) }},
		{"encode", maxEncodeAllocs, func() { encodeAllowed(warm, names, nil) }},
	} {
		got := testing.AllocsPerRun(1000, c.do)
		if t.Logf("%s allocates %v times; %v are allowed", c.what, got, c.most); got > c.most {
			t.Error("too many")
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	wire, names := typical(b), gateway.DefaultHeaders()
	b.Run("wire.go", func(b *testing.B) {
		for b.Loop() {
			decode(wire, names)
		}
	})
	b.Run("proto.Unmarshal", func(b *testing.B) {
		for b.Loop() {
			var check authv3.CheckRequest
			if err := proto.Unmarshal(wire, &check); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	names := gateway.DefaultHeaders()
	b.Run("allowed.go", func(b *testing.B) {
		for b.Loop() {
			encodeAllowed(warm, names, nil)
		}
	})
	b.Run("proto.Marshal", func(b *testing.B) {
		for b.Loop() {
			if _, err := proto.Marshal(reference(warm, names, nil)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
