package xds

import (
	"regexp"
	"strings"
	"time"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sallyport/gateway"
)

// The inner door, as ext_authz. Another way to ask for a key (jwt_authn and rbac, with keys and revocations pushed by a
// control plane) would take the place of door and doorOpen, and nothing else.

const filterAuthz = "envoy.filters.http.ext_authz"

const (
	maxCheckAnswer  = 64 << 10 // bytes; an answer is a handful of headers
	maxDeniedAnswer = 16 << 10 // bytes; a refusal is one JSON object
)

// door asks the authorization server about each request.
func door(g Gateway, trusted gateway.Headers) []*hcmv3.HttpFilter {
	return []*hcmv3.HttpFilter{filter(filterAuthz, &authzv3.ExtAuthz{
		TransportApiVersion: corev3.ApiVersion_V3, // unset means V2, which is gone
		StatPrefix:          "sallyport",
		Services: &authzv3.ExtAuthz_GrpcService{GrpcService: &corev3.GrpcService{
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
				ClusterName:             clusterAuthz,
				MaxReceiveMessageLength: wrapperspb.UInt32(maxCheckAnswer),
				// x-envoy-internal and x-forwarded-for of the check itself, which nobody reads and both sides would pay for.
				SkipEnvoyHeaders: true,
			}},
			// Never 0, which waits for ever; explicit, because the default (200 ms) surprises. The retry is inside it.
			Timeout: durationpb.New(g.Authz.Timeout),
			// A check changes nothing, so one lost with its connection may be asked again, once: a restart of the
			// authorization server is then not seen by callers.
			RetryPolicy: &corev3.RetryPolicy{
				RetryOn:    "connect-failure,unavailable",
				NumRetries: wrapperspb.UInt32(1),
				RetryBackOff: &corev3.BackoffStrategy{
					BaseInterval: durationpb.New(10 * time.Millisecond), // unset, a second, which the timeout has no room for
					// Envoy takes this for the time limit of each try as well, so anything shorter would cut off a slow answer.
					MaxInterval: durationpb.New(g.Authz.Timeout),
				},
			},
		}},
		FailureModeAllow: false, // no answer is a no
		// No answer is an outage, not a refusal: callers try again later. (Unset, it would be 403.)
		StatusOnError: &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
		// A header or value that is not valid HTTP is an error, before the rest of Envoy sees it.
		ValidateMutations: true,
		// The server may say who is calling and take the key away. Anything else (a route, a host) is an error.
		DecoderHeaderMutationRules: mutationRules(trusted),
		// Only what the decision needs crosses to the server: no cookies, no user's data. The trusted prefix is empty by
		// then (see strip); it is listed so that a server sees forgeries even if an operator takes the strip out.
		AllowedHeaders: &matcherv3.ListStringMatcher{Patterns: []*matcherv3.StringMatcher{
			exactMatcher("authorization"),
			exactMatcher("x-request-id"),
			exactMatcher("traceparent"),
			prefixMatcher(trusted.Prefix),
			prefixMatcher(gateway.ClaimedPrefix),
		}},
		// Bytes stay what they were, and repeated lines stay apart: what the server checks is what the backend would read.
		// (Authorization is the exception: Envoy joins its lines with commas for everybody when it reads them.)
		EncodeRawHeaders: true,
		// WithRequestBody stays unset: buffering a body would stall streams, and answer 413 before 401.
		ClearRouteCache: false, // a decision never changes the route that it was made for
		// How long each check took, for the access log.
		EmitFilterStateStats: true,
		// Refusals are not faults of the backend's cluster: its error rate stays its own.
		ChargeClusterResponseStats: wrapperspb.Bool(false),
		// The access log's fields (gateway.MetadataNamespace and so on) come this way.
		EnableDynamicMetadataIngestion: wrapperspb.Bool(true),
		MaxDeniedResponseBodyBytes:     maxDeniedAnswer,
	})}
}

// doorOpen lets a route's requests past the door. Only for routes with nothing to protect, or with a door of their own.
func doorOpen() map[string]*anypb.Any {
	return map[string]*anypb.Any{
		filterAuthz: packed(&authzv3.ExtAuthzPerRoute{Override: &authzv3.ExtAuthzPerRoute_Disabled{Disabled: true}}),
	}
}

// mutationRules allow the trusted headers, their claimed copies (to remove them) and Authorization.
func mutationRules(trusted gateway.Headers) *rulesv3.HeaderMutationRules {
	allowed := []string{
		regexp.QuoteMeta(trusted.Prefix) + ".*",
		regexp.QuoteMeta(gateway.ClaimedPrefix) + ".*",
		"authorization",
	}
	return &rulesv3.HeaderMutationRules{
		DisallowAll:     wrapperspb.Bool(true),
		AllowExpression: &matcherv3.RegexMatcher{Regex: strings.Join(allowed, "|")}, // matched against the whole name
		DisallowIsError: wrapperspb.Bool(true),                                      // loud (500), not silently dropped
	}
}
