package xds

import (
	"maps"
	"slices"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sallyport/gateway"
)

// routesName names the route configuration, for RDS and for statistics.
const routesName = "sallyport"

const (
	// answerTimeout is how long an upstream may take for a whole answer on a path that does not stream.
	answerTimeout = 30 * time.Second
	// exchangeTimeout covers a TokenReview and three look-ups in a slow cluster.
	exchangeTimeout = 15 * time.Second
)

// Routes builds the route table: the outer door's paths, then the backend's. What matches none of them is answered 404.
func Routes(g Gateway) (*routev3.RouteConfiguration, error) {
	g, err := ready(g)
	if err != nil {
		return nil, err
	}
	host := &routev3.VirtualHost{
		Name:    "gateway",
		Domains: []string{"*"}, // identity comes from the key, so the host name decides nothing
		// What a client claimed is for the inner door's eyes alone. The door removes it when it allows a request; this
		// makes sure on the routes where it is not asked.
		RequestHeadersToRemove: gateway.ClaimedHeaders().All(),
	}
	if g.Exchange != nil {
		host.Routes = exchangeRoutes(*g.Exchange)
	}
	trusted, err := gateway.NewHeaders(g.HeaderPrefix)
	if err != nil {
		return nil, err
	}
	host.Routes = append(host.Routes, backendRoutes(g, trusted)...)
	return &routev3.RouteConfiguration{
		Name:             routesName,
		VirtualHosts:     []*routev3.VirtualHost{host},
		ValidateClusters: wrapperspb.Bool(true), // a route to nowhere is refused at start, not found by a caller
	}, nil
}

// exchangeRoutes reach the outer door, which has its own check of tokens and admin credentials: the inner one is not
// asked, and Authorization goes through.
func exchangeRoutes(e Exchange) []*routev3.Route {
	tokens, admin := limit("sallyport_token", e.TokenRate), limit("sallyport_admin", e.AdminRate)
	var out []*routev3.Route
	for _, r := range []struct {
		path   Path
		bucket map[string]*anypb.Any
	}{
		{Path{Exact: "/v1/auth/kubernetes"}, tokens},
		{Path{Exact: "/v1/keys"}, admin},
		{Path{Prefix: "/v1/keys/"}, admin},
		{Path{Exact: "/v1/whoami"}, admin},
		{Path{Exact: "/.well-known/jwks.json"}, admin},
	} {
		route := r.path.route("exchange", &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterExchange},
			Timeout:          durationpb.New(exchangeTimeout),
			RetryPolicy:      safeRetry(),
		})
		route.TypedPerFilterConfig = doorOpen()
		maps.Copy(route.TypedPerFilterConfig, r.bucket)
		out = append(out, route)
	}
	return out
}

func backendRoutes(g Gateway, trusted gateway.Headers) []*routev3.Route {
	paths := slices.Clone(g.Backend.Paths)
	slices.SortStableFunc(paths, byPrecedence)
	out := make([]*routev3.Route, 0, len(paths))
	for _, p := range paths {
		action := &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: g.Backend.Name},
			Timeout:          durationpb.New(answerTimeout),
			RetryPolicy:      safeRetry(),
			// A request that was allowed ends when its key would have, at the latest: a stream is checked once, when it opens.
			MaxStreamDuration: &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(g.MaxStream)},
		}
		if p.Stream {
			action.Timeout = durationpb.New(0)     // a stream has no whole answer to wait for
			action.IdleTimeout = durationpb.New(0) // and may be silent; MaxStreamDuration still ends it
		}
		route := p.route("backend", action)
		// The door removes the key when it allows a request. This holds too where the door is not asked, or forgets.
		route.RequestHeadersToRemove = []string{"authorization"}
		route.TypedPerFilterConfig = mustBeIdentified(trusted)
		if p.Open {
			route.TypedPerFilterConfig = doorOpen()
		}
		out = append(out, route)
	}
	return out
}

// byPrecedence sorts what is more exact to the front: Envoy takes the first route that matches.
func byPrecedence(a, b Path) int {
	if (a.Exact != "") != (b.Exact != "") {
		if a.Exact != "" {
			return -1
		}
		return 1
	}
	return len(b.Prefix) - len(a.Prefix)
}

// safeRetry repeats only what cannot have reached the upstream, so that no write happens twice. It hides an upstream that
// restarts.
func safeRetry() *routev3.RetryPolicy {
	return &routev3.RetryPolicy{RetryOn: "connect-failure,refused-stream", NumRetries: wrapperspb.UInt32(2)}
}

func (p Path) route(name string, action *routev3.RouteAction) *routev3.Route {
	match := &routev3.RouteMatch{}
	if p.Exact != "" {
		match.PathSpecifier = &routev3.RouteMatch_Path{Path: p.Exact}
	} else {
		match.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: p.Prefix}
	}
	return &routev3.Route{
		Name:   name + " " + p.String(), // shown in the access log
		Match:  match,
		Action: &routev3.Route_Route{Route: action},
	}
}

func methodIs(method string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name:                 ":method",
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exactMatcher(method)},
	}
}
