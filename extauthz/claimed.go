package extauthz

import (
	"strings"

	"sallyport/gateway"
)

// contradicts says whether the client named an identity other than the key's. A header of the prefix that has no meaning
// is no contradiction: it is removed on the way to the backend.
func contradicts(claimed []gateway.HeaderValue, id gateway.Identity) bool {
	for _, c := range claimed {
		own, known := identityValue(c.Name, id)
		if known && c.Value != own {
			return true
		}
	}
	return false
}

// identityValue returns what the identity says under the suffix of a trusted header's name.
func identityValue(suffix string, id gateway.Identity) (string, bool) {
	switch strings.ToLower(strings.ReplaceAll(suffix, "_", "-")) {
	case "namespace":
		return id.Namespace, true
	case "tenant":
		return id.Tenant, true
	case "agent":
		return id.Agent, true
	case "session":
		return id.Session, true
	case "key-id":
		return id.KeyID, true
	default:
		return "", false
	}
}
