package xds

import (
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"sallyport/gateway"
)

const filterIdentified = "envoy.filters.http.rbac"

// identified stops what the door let through without saying whose it is. To Envoy an empty answer is a yes, since zero is
// the status OK; and zero bytes are what comes of a server that is none. It has rules on the routes that need a key (see
// mustBeIdentified): a request without a route is answered 404, as it is by the door.
func identified() *hcmv3.HttpFilter { return filter(filterIdentified, &rbacv3.RBAC{}) }

// mustBeIdentified demands a namespace on a route. The header can be the door's alone: strip has taken every other away.
func mustBeIdentified(trusted gateway.Headers) map[string]*anypb.Any {
	somebody := &rbacconfigv3.Policy{
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals: []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Header{Header: &routev3.HeaderMatcher{
			Name: trusted.Namespace,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: ".+"}}, // not empty
			}},
		}}}},
	}
	return map[string]*anypb.Any{filterIdentified: packed(&rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action:   rbacconfigv3.RBAC_ALLOW, // and nobody else
		Policies: map[string]*rbacconfigv3.Policy{"somebody": somebody},
	}}})}
}
