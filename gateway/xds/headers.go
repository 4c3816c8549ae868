package xds

import (
	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"sallyport/gateway"
)

// strip takes away every header that a client must not set, before routing and before any filter runs: even a door that
// failed open would let nothing forged through. Envoy applies the mutations in their order:
//
//  1. remove what the client put under the claimed prefix;
//  2. copy each trusted header there, so that the inner door can refuse a value that contradicts the key;
//  3. remove everything under the trusted prefix.
//
// Then come more. A header that the client names in Connection is gone before this, and a name with an underscore is refused.
func strip(trusted gateway.Headers, more ...*rulesv3.HeaderMutation) *corev3.TypedExtensionConfig {
	claimed := gateway.ClaimedHeaders()
	mutations := []*rulesv3.HeaderMutation{removePrefix(claimed.Prefix)}
	from, to := trusted.All(), claimed.All()
	for i := range from {
		mutations = append(mutations, copyHeader(from[i], to[i]))
	}
	mutations = append(mutations, removePrefix(trusted.Prefix))
	mutations = append(mutations, more...)
	return &corev3.TypedExtensionConfig{
		Name:        "envoy.http.early_header_mutation.header_mutation",
		TypedConfig: packed(&earlyv3.HeaderMutation{Mutations: mutations}),
	}
}

func removePrefix(prefix string) *rulesv3.HeaderMutation {
	return &rulesv3.HeaderMutation{Action: &rulesv3.HeaderMutation_RemoveOnMatch_{
		RemoveOnMatch: &rulesv3.HeaderMutation_RemoveOnMatch{KeyMatcher: prefixMatcher(prefix)},
	}}
}

func remove(name string) *rulesv3.HeaderMutation {
	return &rulesv3.HeaderMutation{Action: &rulesv3.HeaderMutation_Remove{Remove: name}}
}

func copyHeader(from, to string) *rulesv3.HeaderMutation {
	return &rulesv3.HeaderMutation{Action: &rulesv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:         &corev3.HeaderValue{Key: to, Value: "%REQ(" + from + ")%"},
		AppendAction:   corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		KeepEmptyValue: false, // a header that the client did not send has no copy
	}}}
}

// prefixMatcher matches header names. Envoy has them in lower case by then; ignore_case keeps that from mattering.
func prefixMatcher(prefix string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{
		MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix},
		IgnoreCase:   true,
	}
}

func exactMatcher(name string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{
		MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name},
		IgnoreCase:   true,
	}
}
