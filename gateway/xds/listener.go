package xds

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sallyport/gateway"
)

// ListenerName names the listener that callers reach.
const ListenerName = "sallyport"

// Listener builds the listener that callers reach, its routes inside it.
func Listener(g Gateway) (*listenerv3.Listener, error) {
	routes, err := Routes(g)
	if err != nil {
		return nil, err
	}
	if g, err = ready(g); err != nil {
		return nil, err
	}
	manager, err := connectionManager(g, routes)
	if err != nil {
		return nil, err
	}
	return tcpListener(ListenerName, g.Listen, manager), nil
}

func tcpListener(name, listen string, manager *hcmv3.HttpConnectionManager) *listenerv3.Listener {
	a := Endpoint(listen).mustParseListen()
	return &listenerv3.Listener{
		Name:             name,
		Address:          a.proto(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		// A second process on this port fails to start. With SO_REUSEPORT it would silently take a share of the traffic.
		EnableReusePort: wrapperspb.Bool(false),
		// One socket for all workers gives the connections to whoever is first; agents keep theirs for long, so they are
		// spread evenly when they are accepted.
		ConnectionBalanceConfig: &listenerv3.Listener_ConnectionBalanceConfig{
			BalanceType: &listenerv3.Listener_ConnectionBalanceConfig_ExactBalance_{
				ExactBalance: &listenerv3.Listener_ConnectionBalanceConfig_ExactBalance{},
			},
		},
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit), // the default, 1 MiB, is a lot for each of many idle agents
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(manager)},
		}}}},
	}
}

// connectionManager reads requests, refuses what is ambiguous, strips what is forged, and runs the filters.
func connectionManager(g Gateway, routes *routev3.RouteConfiguration) (*hcmv3.HttpConnectionManager, error) {
	trusted, err := gateway.NewHeaders(g.HeaderPrefix)
	if err != nil {
		return nil, err
	}
	filters := []*hcmv3.HttpFilter{limiter()}
	filters = append(filters, door(g, trusted)...)
	filters = append(filters, identified(), router())
	return &hcmv3.HttpConnectionManager{
		StatPrefix:     ListenerName,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes},
		HttpFilters:    filters,

		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{strip(trusted, g.Tracing.begin()...)},

		// One spelling for each path, so that a route (and what it protects) cannot be reached by another.
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_REJECT_REQUEST, // %2F: servers disagree on what it means

		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			// x_sallyport_namespace is x-sallyport-namespace to CGI-like servers.
			HeadersWithUnderscoresAction: corev3.HttpProtocolOptions_REJECT_REQUEST,
			MaxHeadersCount:              wrapperspb.UInt32(100),
			IdleTimeout:                  durationpb.New(15 * time.Minute), // of a connection without requests; the default is an hour
		},
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams:        wrapperspb.UInt32(100),      // for each connection; unset lets one client open 2³¹
			InitialStreamWindowSize:     wrapperspb.UInt32(64 << 10), // what a client may send ahead of a slow backend, in bytes,
			InitialConnectionWindowSize: wrapperspb.UInt32(1 << 20),  // not the default 256 MiB
		},
		MaxRequestHeadersKb:   wrapperspb.UInt32(32),
		RequestHeadersTimeout: durationpb.New(10 * time.Second), // a client that dribbles its headers
		RequestTimeout:        durationpb.New(5 * time.Minute),  // or its body; it does not count a stream's answer
		StreamIdleTimeout:     durationpb.New(5 * time.Minute),  // routes that stream turn it off and set max_stream_duration

		// The peer is the client (at the edge), or that many proxies in front wrote X-Forwarded-For; never more than that
		// is believed. Also removes x-envoy-* headers that a client sent.
		UseRemoteAddress:  wrapperspb.Bool(true),
		XffNumTrustedHops: g.TrustedHops,
		// Nobody is internal: private addresses are where sandboxes live, and an internal client may set x-envoy-* headers
		// (time limits, retries). It takes a range to say so, one that no peer can have: an empty list means private addresses.
		InternalAddressConfig: &hcmv3.HttpConnectionManager_InternalAddressConfig{
			CidrRanges: []*corev3.CidrRange{{AddressPrefix: "255.255.255.255", PrefixLen: wrapperspb.UInt32(32)}},
		},

		GenerateRequestId:            wrapperspb.Bool(true),
		AlwaysSetRequestIdInResponse: true,                                 // so that a caller can name the request it asks about
		ForwardClientCertDetails:     hcmv3.HttpConnectionManager_SANITIZE, // no X-Forwarded-Client-Cert from a client
		// No UpgradeConfigs: a WebSocket would be checked once and then live for ever. Envoy refuses upgrades it is not told of.

		LocalReplyConfig: localReplies(),
		AccessLog:        accessLog(g.AccessLog),
		Tracing:          g.Tracing.manager(g.Node.Cluster),
	}, nil
}

// router goes last and forwards.
func router() *hcmv3.HttpFilter {
	return filter("envoy.filters.http.router", &routerv3.Router{
		SuppressEnvoyHeaders: true, // x-envoy-* tell a backend or a caller nothing that they need
	})
}

func filter(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(config)}}
}
