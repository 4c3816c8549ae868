package checkserver

import (
	"sallyport/extauthz"
	"sallyport/gateway"
)

// metadataOf is what Envoy's access log shows of the decision, under envoy.filters.http.ext_authz. Empty values are left out.
func metadataOf(d extauthz.Decision) [5]gateway.HeaderValue {
	return [...]gateway.HeaderValue{
		{Name: gateway.MetadataReason, Value: string(d.Reason)},
		{Name: gateway.MetadataNamespace, Value: d.Identity.Namespace},
		{Name: gateway.MetadataTenant, Value: d.Identity.Tenant},
		{Name: gateway.MetadataAgent, Value: d.Identity.Agent},
		{Name: gateway.MetadataKeyID, Value: d.Identity.KeyID},
	}
}
