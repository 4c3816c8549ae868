package gateway

// The fields of the dynamic metadata that the authorization server returns with each decision, for Envoy's access log.
// They hold no secret. Envoy files them under "envoy.filters.http.ext_authz".
const (
	MetadataNamespace = "namespace" // whose data
	MetadataTenant    = "tenant"
	MetadataAgent     = "agent"
	MetadataKeyID     = "key_id"
	MetadataReason    = "reason" // why the request was allowed or refused, a short fixed word
)
