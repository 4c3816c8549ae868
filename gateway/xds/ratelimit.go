package xds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const filterLimit = "envoy.filters.http.local_ratelimit"

// limiter goes first, so that a flood costs no check. Without a bucket it limits nothing: routes bring theirs.
func limiter() *hcmv3.HttpFilter {
	return filter(filterLimit, &limitv3.LocalRateLimit{StatPrefix: "sallyport"})
}

// limit is a route's bucket. All workers draw from the same one, whatever the connection.
func limit(name string, r Rate) map[string]*anypb.Any {
	always := &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100}} // unset means never
	return map[string]*anypb.Any{filterLimit: packed(&limitv3.LocalRateLimit{
		StatPrefix: name,
		TokenBucket: &typev3.TokenBucket{
			MaxTokens:     r.Requests,
			TokensPerFill: wrapperspb.UInt32(r.Requests),
			FillInterval:  durationpb.New(r.Every),
		},
		FilterEnabled:          always,
		FilterEnforced:         always,
		Status:                 &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests},
		EnableRetryAfterHeader: true, // the true number of seconds until the next token
	})}
}
