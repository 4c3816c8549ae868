package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dnscommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The names of the clusters. The backend's is the operator's.
const (
	clusterAuthz    = "sallyport_authz"
	clusterExchange = "sallyport_exchange"
	clusterAdmin    = "sallyport_admin" // Envoy's own admin interface, for the metrics listener

	clusterCollector = "sallyport_collector"
)

const (
	connectTimeout = time.Second // everything that Envoy talks to is near
	// An idle connection is closed before a Go server (or most others) closes it: a request sent into a closing connection
	// is lost, and a write must not be sent again.
	upstreamIdle = 30 * time.Second
	// bufferLimit is what Envoy holds of one stream in each direction before it pushes back, in bytes.
	bufferLimit = 32 << 10
)

// Clusters builds the upstreams: the backend, the inner door, and the outer door, the trace collector and the admin
// interface if they are asked for.
func Clusters(g Gateway) ([]*clusterv3.Cluster, error) {
	g, err := ready(g)
	if err != nil {
		return nil, err
	}
	out := []*clusterv3.Cluster{
		cluster(g.Backend.Name, g.Backend.Upstream, http1()),
		cluster(clusterAuthz, g.Authz.Upstream, http2()),
	}
	if g.Exchange != nil {
		out = append(out, cluster(clusterExchange, g.Exchange.Upstream, http1()))
	}
	if g.Tracing != nil {
		out = append(out, cluster(clusterCollector, g.Tracing.Upstream, http2()))
	}
	if g.Metrics != "" {
		out = append(out, cluster(clusterAdmin, Upstream{Endpoint: g.Admin}, http1()))
	}
	return out, nil
}

// cluster builds what every upstream has in common.
func cluster(name string, at Upstream, speaks protocol) *clusterv3.Cluster {
	a := at.Endpoint.mustParse()
	c := &clusterv3.Cluster{
		Name:                          name,
		ConnectTimeout:                durationpb.New(connectTimeout),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: name,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: a.proto()}},
			}}}},
		},
		// Finite, so that a slow upstream costs this Envoy no more than this; the rest is refused at once with 503.
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections:     wrapperspb.UInt32(1024),
			MaxPendingRequests: wrapperspb.UInt32(1024),
			MaxRequests:        wrapperspb.UInt32(1024),
			MaxRetries:         wrapperspb.UInt32(16), // in flight, so that an outage does not double the load
			TrackRemaining:     true,                  // in the statistics, to alert before the limit
		}}},
		// No outlier_detection: ejecting the only host makes an outage out of a fault.
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": packed(speaks.options),
		},
	}
	discover(c, a)
	if a.path == "" {
		// A peer that vanished without a word is noticed on an idle connection too.
		c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
			KeepaliveTime: wrapperspb.UInt32(30), KeepaliveInterval: wrapperspb.UInt32(10), KeepaliveProbes: wrapperspb.UInt32(3), // seconds, seconds, count
		}}
	}
	if at.TLS != nil {
		c.TransportSocket = at.TLS.upstream(speaks.alpn)
	}
	return c
}

// discover resolves a name with DNS, every address of it a host of its own; anything else stands as it is written.
func discover(c *clusterv3.Cluster, a address) {
	if a.path != "" || a.isIP() {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
		return
	}
	c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: "envoy.clusters.dns",
		TypedConfig: packed(&dnsv3.DnsCluster{
			// What the resolver says is believed for as long as it says, and asked again no faster than the default 5 s.
			RespectDnsTtl:   true,
			DnsLookupFamily: dnscommonv3.DnsLookupFamily_ALL, // a service may have either family, or both
		}),
	}}
}

// protocol is what Envoy speaks to an upstream.
type protocol struct {
	alpn    string // its name in a TLS handshake; gRPC servers hang up without it
	options *upstreamv3.HttpProtocolOptions
}

// http1 is what backends are certain to speak. Spelling it out keeps Envoy from following the caller's protocol. It also
// keeps request trailers away from them: Envoy drops those towards HTTP/1 unless told otherwise.
func http1() protocol {
	return protocol{alpn: "http/1.1", options: &upstreamv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(upstreamIdle)},
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
					HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
				},
			},
		},
	}}
}

// http2 is what gRPC needs.
func http2() protocol {
	return protocol{alpn: "h2", options: &upstreamv3.HttpProtocolOptions{
		// No idle_timeout of our own: keep-alive holds the connection open, so that the first check after a quiet hour is as
		// fast as any. The server's MaxConnectionAge ends it from time to time and so spreads the load.
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
						// A dead peer is noticed within 35 s even if no request asks. The server must allow pings this often
						// (MinTime of 10 s or less, PermitWithoutStream), or it answers them with "too many pings".
						ConnectionKeepalive: &corev3.KeepaliveSettings{
							Interval: durationpb.New(30 * time.Second),
							Timeout:  durationpb.New(5 * time.Second),
						},
					},
				},
			},
		},
	}}
}
