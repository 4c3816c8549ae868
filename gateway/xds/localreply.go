package xds

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sallyport/gateway"
)

// localReplies gives Envoy's own errors the same JSON body that everything behind it answers with. The first mapper that
// matches decides, so the special ones come first.
func localReplies() *hcmv3.LocalReplyConfig {
	out := &hcmv3.LocalReplyConfig{Mappers: []*hcmv3.ResponseMapper{
		// A refusal by the authorization server is a local reply to Envoy, too, but the words are the server's: nothing is
		// changed. (ext_authz_error is the other one: Envoy got no answer, and has only its own words.)
		{Filter: when("response.code_details == 'ext_authz_denied'")},
	}}
	for _, r := range ownReplies {
		out.Mappers = append(out.Mappers, r.mapper())
	}
	return out
}

// reply is what callers read instead of Envoy's own text. A zero Status in error leaves the status as it is.
type reply struct {
	when  string // a CEL condition; empty matches the status alone
	error gateway.Error
}

const soon = time.Second // for Retry-After: what failed is restarting, or overloaded for a moment

var ownReplies = []reply{
	{
		when:  "response.code_details == 'ext_authz_error' && response.code == 503",
		error: gateway.Error{Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "the key could not be checked in time, and the request was not forwarded: send it again", RetryAfter: soon},
	},
	{
		when:  "response.code_details.startsWith('rbac_access_denied')", // not the caller's fault, so not 403
		error: gateway.Error{Status: http.StatusInternalServerError, Code: gateway.CodeInternal, Message: "the key was let through without a word of whose it is, and the request was not forwarded"},
	},
	{
		when:  "response.code_details.endsWith('unexpected_underscore')",
		error: gateway.Error{Status: http.StatusBadRequest, Code: gateway.CodeInvalidArgument, Message: "a header name holds an underscore, which some servers read as a hyphen: use hyphens"},
	},
	{error: gateway.Error{Status: http.StatusBadRequest, Code: gateway.CodeInvalidArgument, Message: "the gateway cannot read this request: check its path (no encoded slashes), its headers (no control characters) and its framing"}},
	{error: gateway.Error{Status: http.StatusUnauthorized, Code: gateway.CodeUnauthenticated, Message: "send \"Authorization: Bearer <key>\""}},
	{error: gateway.Error{Status: http.StatusForbidden, Code: gateway.CodeForbidden, Message: "the gateway does not allow this request; upgrades such as WebSocket are among what it refuses"}},
	{error: gateway.Error{Status: http.StatusNotFound, Code: gateway.CodeNotFound, Message: "the gateway knows no such path: check its spelling"}},
	{error: gateway.Error{Status: http.StatusMethodNotAllowed, Code: gateway.CodeMethodNotAllowed, Message: "this path does not answer that method"}},
	{error: gateway.Error{Status: http.StatusRequestTimeout, Code: gateway.CodeUnavailable, Message: "the request took too long: send it again, or open a new stream", RetryAfter: soon}},
	{error: gateway.Error{Status: http.StatusRequestEntityTooLarge, Code: gateway.CodeInvalidArgument, Message: "the request is too large: send less at once"}},
	{error: gateway.Error{Status: http.StatusUpgradeRequired, Code: gateway.CodeInvalidArgument, Message: "HTTP/1.0 is not spoken here: use HTTP/1.1 or HTTP/2"}},
	{error: gateway.Error{Status: http.StatusRequestHeaderFieldsTooLarge, Code: gateway.CodeInvalidArgument, Message: "the headers are too large or too many: at most 100 of them, 32 KiB together"}},
	{error: gateway.Error{Status: http.StatusTooManyRequests, Code: gateway.CodeRateLimited, Message: "too many requests: wait for as long as Retry-After says", RetryAfter: soon}},
	{error: gateway.Error{Status: http.StatusBadGateway, Code: gateway.CodeUnavailable, Message: "what is behind the gateway gave no valid answer: it may have acted on the request, so ask before you send a write again", RetryAfter: soon}},
	{
		when:  "response.code == 503 && (response.code_details.contains('{connection_termination') || response.code_details.contains('{remote_reset'))",
		error: gateway.Error{Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "what is behind the gateway broke off: it may have acted on the request, so ask before you send a write again", RetryAfter: soon},
	},
	{error: gateway.Error{Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "the gateway cannot reach what is behind it, and the request was not forwarded: send it again", RetryAfter: soon}},
	{error: gateway.Error{Status: http.StatusGatewayTimeout, Code: gateway.CodeUnavailable, Message: "what is behind the gateway did not answer in time: it may have acted on the request, so ask before you send a write again", RetryAfter: soon}},
	{
		when:  "response.code >= 400",
		error: gateway.Error{Code: gateway.CodeInternal, Message: "the gateway could not handle this request; its log says why"},
	},
}

func (r reply) mapper() *hcmv3.ResponseMapper {
	condition := r.when
	if condition == "" {
		condition = fmt.Sprintf("response.code == %d", r.error.Status)
	}
	m := &hcmv3.ResponseMapper{
		Filter: when(condition),
		BodyFormatOverride: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: strings.ReplaceAll(string(r.error.Body()), "%", "%%")},
			}},
			ContentType: "application/json",
		},
	}
	if r.when != "" && r.error.Status != 0 {
		m.StatusCode = wrapperspb.UInt32(uint32(r.error.Status))
	}
	for _, h := range r.error.Headers() {
		m.HeadersToAdd = append(m.HeadersToAdd, &corev3.HeaderValueOption{
			Header: &corev3.HeaderValue{Key: h.Name, Value: h.Value},
			// The rate limiter knows the true Retry-After: its own stays.
			AppendAction: corev3.HeaderValueOption_ADD_IF_ABSENT,
		})
	}
	return m
}

// when is a condition on a response, in CEL. (The filter on status codes cannot see response.code_details, which alone
// tells what the authorization server said from what Envoy says.)
func when(expression string) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{
		ExtensionFilter: &accesslogv3.ExtensionFilter{
			Name: "envoy.access_loggers.extension_filters.cel",
			ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{
				TypedConfig: packed(&celv3.ExpressionFilter{Expression: expression}),
			},
		},
	}}
}
