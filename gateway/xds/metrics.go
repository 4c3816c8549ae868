package xds

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// metricsName names the listener that a scraper and a readiness probe reach.
const metricsName = "sallyport_metrics"

// metricsListener shows two harmless pages of the admin interface, which itself stays out of reach: on it anybody could
// read the configuration or stop Envoy. Exact paths and GET alone pass.
func metricsListener(g Gateway) *listenerv3.Listener {
	host := &routev3.VirtualHost{Name: "metrics", Domains: []string{"*"}}
	for _, path := range []string{"/stats/prometheus", "/ready"} {
		route := Path{Exact: path}.route("metrics", &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterAdmin},
		})
		route.Match.Headers = []*routev3.HeaderMatcher{methodIs("GET")}
		host.Routes = append(host.Routes, route)
	}
	return tcpListener(metricsName, g.Metrics, &hcmv3.HttpConnectionManager{
		StatPrefix: metricsName,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: metricsName, VirtualHosts: []*routev3.VirtualHost{host},
		}},
		HttpFilters: []*hcmv3.HttpFilter{router()},
	})
}
