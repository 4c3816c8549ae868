package checkserver

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// FuzzAnyCheckRequestIsReadAndAnswered gives the adapter any bytes that are a CheckRequest. Whatever the headers, what is
// set is never removed, what belongs to the gateway never passes, and the answer can be sent.
func FuzzAnyCheckRequestIsReadAndAnswered(f *testing.F) {
	names := gateway.DefaultHeaders()
	decision := extauthz.Decision{Reason: extauthz.ReasonAllowed, Identity: gateway.Identity{Namespace: "agents:run-1", Agent: "run-1"}}
	for _, headers := range [][2]string{
		{"authorization", "Bearer x"}, {"x-sallyport-namespace", "other"}, {"X_SALLYPORT_AGENT", "\xff"}, {"x-sallyport-", ""}, {"sallyport-claimed-tenant", "t"},
	} {
		seed, err := proto.Marshal(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{
			Http: &authv3.AttributeContext_HttpRequest{
				Headers:   map[string]string{"accept": "*/*"},
				HeaderMap: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: headers[0], RawValue: []byte(headers[1])}}},
			},
		}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var check authv3.CheckRequest
		if proto.Unmarshal(data, &check) != nil {
			return
		}
		p := decode(data, names)
		wire := encodeAllowed(decision, names, p.Forged)
		var out authv3.CheckResponse
		if err := proto.Unmarshal(wire, &out); err != nil {
			t.Fatalf("the answer cannot be read: %v", err)
		}
		if want := reference(decision, names, p.Forged); !proto.Equal(&out, want) {
			t.Fatalf("answered\n%v\nprotobuf would\n%v", &out, want)
		}
		ok := out.GetOkResponse()
		kept := map[string]bool{}
		for _, h := range ok.GetHeaders() {
			kept[h.GetHeader().GetKey()] = true
		}
		removed := map[string]bool{}
		for _, name := range ok.GetHeadersToRemove() {
			removed[name] = true
			if kept[strings.ToLower(name)] {
				t.Errorf("%q is set and removed", name)
			}
		}
		if !removed["authorization"] {
			t.Error("the key stays")
		}
		for _, h := range check.GetAttributes().GetRequest().GetHttp().GetHeaderMap().GetHeaders() {
			if name := h.GetKey(); names.Owns(name) && !removed[name] && !kept[strings.ToLower(name)] {
				t.Errorf("%q reaches the backend", name)
			}
		}
	})
}
