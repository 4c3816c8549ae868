package checkserver

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// received is what is read of a CheckRequest: what the decision needs, and the names of headers that must go.
type received struct {
	request   extauthz.Request
	forged    []string // headers of the gateway's that the client sent, by their names as they arrived
	requestID string   // x-request-id: what access logs and backends know the request by
}

// read takes the headers from header_map, which holds every line as it came (encode_raw_headers), or from headers, where
// Envoy joins the lines of one name with commas.
func read(check *authv3.CheckRequest, names gateway.Headers) received {
	var r received
	http := check.GetAttributes().GetRequest().GetHttp()
	if raw := http.GetHeaderMap().GetHeaders(); len(raw) > 0 {
		for _, h := range raw {
			r.add(h.GetKey(), valueOf(h), names)
		}
		return r
	}
	for name, value := range http.GetHeaders() {
		r.add(name, value, names)
	}
	return r
}

// claimedNames are where Envoy shows what it stripped from under the trusted prefix.
var claimedNames = gateway.ClaimedHeaders()

func (r *received) add(name, value string, names gateway.Headers) {
	switch {
	case strings.EqualFold(name, "authorization"):
		r.request.Authorization = append(r.request.Authorization, value)
	case strings.EqualFold(name, "x-request-id"):
		r.requestID = value
	case names.Owns(name):
		r.claim(name, name[len(names.Prefix):], value)
	case claimedNames.Owns(name):
		r.claim(name, name[len(gateway.ClaimedPrefix):], value)
	}
}

func (r *received) claim(name, suffix, value string) {
	r.forged = append(r.forged, name)
	r.request.Claimed = append(r.request.Claimed, gateway.HeaderValue{Name: suffix, Value: value})
}

func valueOf(h *corev3.HeaderValue) string {
	if raw := h.GetRawValue(); len(raw) > 0 {
		return string(raw)
	}
	return h.GetValue()
}
