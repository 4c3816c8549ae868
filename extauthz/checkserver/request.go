package checkserver

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// read takes the headers from header_map, which holds every line as it came (encode_raw_headers), or from headers, where
// Envoy joins the lines of one name with commas.
func read(check *authv3.CheckRequest, names gateway.Headers) extauthz.Presented {
	var p extauthz.Presented
	http := check.GetAttributes().GetRequest().GetHttp()
	if raw := http.GetHeaderMap().GetHeaders(); len(raw) > 0 {
		for _, h := range raw {
			p.Add(h.GetKey(), valueOf(h), names)
		}
		return p
	}
	for name, value := range http.GetHeaders() {
		p.Add(name, value, names)
	}
	return p
}

func valueOf(h *corev3.HeaderValue) string {
	if raw := h.GetRawValue(); len(raw) > 0 {
		return string(raw)
	}
	return h.GetValue()
}
