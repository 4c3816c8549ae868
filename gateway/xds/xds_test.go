package xds_test

import (
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"sallyport/gateway/xds"
)

func local() xds.Gateway {
	return xds.Gateway{
		Listen:  "127.0.0.1:0",
		Backend: xds.Backend{Upstream: xds.Upstream{Endpoint: "unix:/run/backend.sock"}},
		Authz:   xds.Authz{Upstream: xds.Upstream{Endpoint: "unix:/run/authz.sock"}},
	}
}

// connectionManager unpacks the connection manager of the listener.
func connectionManager(t *testing.T, g xds.Gateway) *hcmv3.HttpConnectionManager {
	t.Helper()
	listener, err := xds.Listener(g)
	if err != nil {
		t.Fatal(err)
	}
	if listener.GetEnableReusePort().GetValue() {
		t.Error("another process could take a share of the port")
	}
	manager := &hcmv3.HttpConnectionManager{}
	if err := listener.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	return manager
}

// What may never change without somebody deciding it.
func TestTheDoorNeverOpensByItself(t *testing.T) {
	g := local()
	g.Authz.Timeout = 150 * time.Millisecond
	manager := connectionManager(t, g)
	var names []string
	door := &authzv3.ExtAuthz{}
	for _, f := range manager.GetHttpFilters() {
		names = append(names, f.GetName())
		if f.GetDisabled() || f.GetIsOptional() {
			t.Errorf("%s may be missing", f.GetName())
		}
		if f.GetTypedConfig().MessageIs(door) {
			if err := f.GetTypedConfig().UnmarshalTo(door); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"envoy.filters.http.local_ratelimit", "envoy.filters.http.ext_authz", "envoy.filters.http.rbac", "envoy.filters.http.router"}
	if !slices.Equal(names, want) {
		t.Errorf("filters = %v, want %v", names, want)
	}
	switch {
	case door.GetFailureModeAllow(), door.GetFailureModeAllowHeaderAdd(), door.GetShadowMode():
		t.Error("the door fails open")
	case door.GetFilterEnabled() != nil, door.GetFilterEnabledMetadata() != nil:
		t.Error("the door can be switched off at run time")
	case door.GetStatusOnError().GetCode() != 503:
		t.Errorf("status on error = %v", door.GetStatusOnError())
	case door.GetGrpcService().GetTimeout().AsDuration() != g.Authz.Timeout:
		t.Errorf("timeout = %v", door.GetGrpcService().GetTimeout())
	case door.GetGrpcService().GetRetryPolicy().GetRetryBackOff().GetMaxInterval().AsDuration() != g.Authz.Timeout:
		t.Error("a try is cut off before the timeout: Envoy takes the longest back-off for its limit")
	case door.GetWithRequestBody() != nil:
		t.Error("bodies are buffered")
	case door.GetClearRouteCache():
		t.Error("a decision changes the route")
	}
}

func TestAnInvalidGatewayIsNeverBuilt(t *testing.T) {
	g := local()
	g.Authz.Endpoint = "nonsense"
	if _, err := xds.Bootstrap(g); err == nil {
		t.Error("Bootstrap accepted it")
	}
	if _, err := xds.Listener(g); err == nil {
		t.Error("Listener accepted it")
	}
	if _, err := xds.Routes(g); err == nil {
		t.Error("Routes accepted it")
	}
	if _, err := xds.Clusters(g); err == nil {
		t.Error("Clusters accepted it")
	}
	if _, err := xds.Render(g); err == nil {
		t.Error("Render accepted it")
	}
}

func TestExactPathsGoFirstAndLongPrefixesBeforeShortOnes(t *testing.T) {
	g := local()
	g.Backend.Paths = []xds.Path{{Prefix: "/"}, {Prefix: "/v1/"}, {Exact: "/v1/x/y/z"}, {Prefix: "/v1/x/"}, {Exact: "/a"}}
	routes, err := xds.Routes(g)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range routes.GetVirtualHosts()[0].GetRoutes() {
		got = append(got, r.GetMatch().GetPath()+r.GetMatch().GetPrefix())
	}
	if want := []string{"/v1/x/y/z", "/a", "/v1/x/", "/v1/", "/"}; !slices.Equal(got, want) {
		t.Errorf("order = %v, want %v", got, want)
	}
	if g.Backend.Paths[0].Prefix != "/" {
		t.Error("the caller's list was sorted")
	}
}

func TestUpstreams(t *testing.T) {
	g := local()
	g.Exchange = &xds.Exchange{Upstream: xds.Upstream{Endpoint: "exchange.sallyport.svc:8080"}}
	g.Backend.Endpoint = "http://10.0.0.1"
	clusters, err := xds.Clusters(g)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*clusterv3.Cluster{}
	for _, c := range clusters {
		byName[c.GetName()] = c
		if c.GetCircuitBreakers().GetThresholds()[0].GetMaxRequests() == nil || c.GetOutlierDetection() != nil {
			t.Errorf("%s: circuit breakers %v, outlier detection %v", c.GetName(), c.GetCircuitBreakers(), c.GetOutlierDetection())
		}
	}
	address := func(name string) string {
		a := byName[name].GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress()
		return a.GetPipe().GetPath() + a.GetSocketAddress().GetAddress()
	}
	if got := address("backend"); got != "10.0.0.1" {
		t.Errorf("backend = %q", got)
	}
	if got := address("sallyport_authz"); got != "/run/authz.sock" {
		t.Errorf("authz = %q", got)
	}
	if byName["sallyport_exchange"].GetClusterType().GetName() != "envoy.clusters.dns" {
		t.Error("a name is not resolved with DNS")
	}
	if byName["sallyport_admin"] != nil {
		t.Error("the admin interface is an upstream, though there are no metrics")
	}
}

// A yes that names nobody is stopped on every route that the door is asked on, and on no other.
func TestRoutesThatNeedAKeyNeedAnIdentity(t *testing.T) {
	g := local()
	g.Backend.Paths = []xds.Path{{Prefix: "/v1/"}, {Exact: "/mcp", Stream: true}, {Exact: "/healthz", Open: true}}
	routes, err := xds.Routes(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes.GetVirtualHosts()[0].GetRoutes() {
		_, open := r.GetTypedPerFilterConfig()["envoy.filters.http.ext_authz"]
		if _, demands := r.GetTypedPerFilterConfig()["envoy.filters.http.rbac"]; demands == open {
			t.Errorf("%s: the door is open: %v, an identity is demanded: %v", r.GetName(), open, demands)
		}
	}
}
