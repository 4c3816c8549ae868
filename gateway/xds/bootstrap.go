package xds

import (
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Bootstrap builds everything that an Envoy needs to start, all of it static.
func Bootstrap(g Gateway) (*bootstrapv3.Bootstrap, error) {
	listener, err := Listener(g)
	if err != nil {
		return nil, err
	}
	clusters, err := Clusters(g)
	if err != nil {
		return nil, err
	}
	if g, err = ready(g); err != nil {
		return nil, err
	}
	listeners := []*listenerv3.Listener{listener}
	if g.Metrics != "" {
		listeners = append(listeners, metricsListener(g))
	}
	return &bootstrapv3.Bootstrap{
		Node:            &corev3.Node{Id: g.Node.ID, Cluster: g.Node.Cluster},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Listeners: listeners, Clusters: clusters},
		Admin:           admin(g.Admin),
		OverloadManager: overload(g.Limits),
		StatsConfig:     statistics(g.Authz.Timeout),
	}, nil
}

// admin is for the supervisor and for the people on call. It is on a socket that only its owner can open.
func admin(at Endpoint) *bootstrapv3.Admin {
	address := at.mustParse().proto()
	if pipe := address.GetPipe(); pipe != nil {
		pipe.Mode = socketMode
	}
	return &bootstrapv3.Admin{
		Address:               address,
		ProfilePath:           "/dev/null", // the default is a file under /var/log
		IgnoreGlobalConnLimit: true,        // it must answer when callers use up their connections
		// What is needed to watch and to drain. Not /quitquitquit, /cpuprofiler, /heapprofiler, /runtime_modify.
		AllowPaths: []*matcherv3.StringMatcher{
			exactMatcher("/ready"),
			prefixMatcher("/listeners"),
			prefixMatcher("/clusters"),
			prefixMatcher("/stats"),
			prefixMatcher("/server_info"),
			prefixMatcher("/config_dump"),
			prefixMatcher("/certs"),
			prefixMatcher("/memory"),
			prefixMatcher("/logging"),
			prefixMatcher("/healthcheck/"),
			prefixMatcher("/drain_listeners"),
		},
	}
}

// overload sheds load before the kernel kills Envoy: first memory is given back, then connections are not kept, then
// requests are refused (503), then connections.
func overload(l Limits) *overloadv3.OverloadManager {
	return &overloadv3.OverloadManager{
		RefreshInterval: durationpb.New(250 * time.Millisecond),
		ResourceMonitors: []*overloadv3.ResourceMonitor{
			monitor(monitorHeap, &heapv3.FixedHeapConfig{MaxHeapSizeBytes: uint64(l.HeapMiB) << 20}),
			// Each connection costs memory and a file descriptor; without this limit there is none.
			monitor("envoy.resource_monitors.global_downstream_max_connections", &connectionsv3.DownstreamConnectionsConfig{
				MaxActiveDownstreamConnections: int64(l.Connections),
			}),
		},
		Actions: []*overloadv3.OverloadAction{
			onHeap("envoy.overload_actions.shrink_heap", 0.85),
			onHeap("envoy.overload_actions.disable_http_keepalive", 0.90),
			onHeap("envoy.overload_actions.stop_accepting_requests", 0.95),
			onHeap("envoy.overload_actions.stop_accepting_connections", 0.98),
		},
	}
}

const monitorHeap = "envoy.resource_monitors.fixed_heap"

func monitor(name string, config proto.Message) *overloadv3.ResourceMonitor {
	return &overloadv3.ResourceMonitor{
		Name:       name,
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: packed(config)},
	}
}

// onHeap acts when that fraction of the heap is in use.
func onHeap(action string, fraction float64) *overloadv3.OverloadAction {
	return &overloadv3.OverloadAction{Name: action, Triggers: []*overloadv3.Trigger{{
		Name: monitorHeap,
		TriggerOneof: &overloadv3.Trigger_Threshold{
			Threshold: &overloadv3.ThresholdTrigger{Value: fraction},
		},
	}}}
}

// statistics cuts the duration of checks finely up to their timeout, where Envoy's default buckets are far apart.
func statistics(timeout time.Duration) *metricsv3.StatsConfig {
	limit := float64(timeout) / float64(time.Millisecond)
	buckets := []float64{0.5, 1, 2, 5, 10, 20, 50, 100} // milliseconds
	for _, share := range []float64{0.5, 0.75, 1, 2} {
		if b := share * limit; b > buckets[len(buckets)-1] {
			buckets = append(buckets, b)
		}
	}
	return &metricsv3.StatsConfig{HistogramBucketSettings: []*metricsv3.HistogramBucketSettings{{
		Match:   prefixMatcher("cluster." + clusterAuthz + "."),
		Buckets: buckets,
	}}}
}
