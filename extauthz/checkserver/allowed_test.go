package checkserver

import (
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// reference is the answer that lets a request pass, made with the generated code.
func reference(d extauthz.Decision, names gateway.Headers, forged []string) *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status: &rpcstatus.Status{},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: options(names.Values(d.Identity)), HeadersToRemove: extauthz.HeadersToRemove(d, names, forged),
		}},
		DynamicMetadata: metadata(d),
	}
}

func TestAnAllowIsEncodedAsTheGeneratedCodeWould(t *testing.T) {
	other, err := gateway.NewHeaders("x-acme-")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", gateway.MaxNamespaceBytes)
	for name, c := range map[string]struct {
		identity gateway.Identity
		names    gateway.Headers
		forged   []string
	}{
		"all that a key can say":      {warm.Identity, gateway.DefaultHeaders(), nil},
		"another prefix":              {warm.Identity, other, nil},
		"a key made for a namespace":  {gateway.Identity{Namespace: "n", KeyID: "00ff"}, gateway.DefaultHeaders(), nil},
		"nothing":                     {gateway.Identity{}, gateway.DefaultHeaders(), nil},
		"forged headers":              {warm.Identity, gateway.DefaultHeaders(), []string{"x-sallyport-namespace", "X-Sallyport_Color", ""}},
		"more than there is room for": {gateway.Identity{Namespace: long, Tenant: long + long, Agent: long + long, Session: long + long, KeyID: long + long}, other, []string{strings.Repeat("x-acme-", 500)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := extauthz.Decision{Reason: extauthz.ReasonAllowed, Identity: c.identity}
			var got authv3.CheckResponse
			if err := proto.Unmarshal(encodeAllowed(d, c.names, c.forged), &got); err != nil {
				t.Fatal(err)
			}
			if want := reference(d, c.names, c.forged); !proto.Equal(&got, want) {
				t.Errorf("got\n%v\nwant\n%v", &got, want)
			}
		})
	}
}
