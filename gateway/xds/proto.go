package xds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// ready fills in the defaults and checks the result, so that what builds the parts can rely on both.
func ready(g Gateway) (Gateway, error) {
	g = g.WithDefaults()
	return g, g.Validate()
}

// packed wraps a message for a typed_config field.
func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil { // only text that is not UTF-8 fails to marshal, and Validate refuses that
		panic("xds: marshal " + string(m.ProtoReflect().Descriptor().FullName()) + ": " + err.Error())
	}
	return a
}

// mustParse is for endpoints that Validate has seen.
func (e Endpoint) mustParse() address {
	a, err := e.parse()
	if err != nil {
		panic("xds: endpoint was not validated: " + err.Error())
	}
	return a
}

// socketMode lets the owner alone connect to a socket that Envoy makes.
const socketMode = 0o600

func (a address) proto() *corev3.Address {
	if a.path != "" {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: a.path}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       a.host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: a.port},
	}}}
}

// mustParseListen is mustParse for an address to bind to, where port 0 is allowed.
func (e Endpoint) mustParseListen() address {
	a, err := parseHostPort(string(e))
	if err != nil {
		panic("xds: listen address was not validated: " + err.Error())
	}
	return a
}
