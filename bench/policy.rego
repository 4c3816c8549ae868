# The inner door's policy, for Open Policy Agent: a key that we signed, that the key store knows, and that is not revoked.
package sallyport

import rego.v1

default answer := {"allowed": false, "http_status": 401}

answer := {"allowed": true, "headers": headers, "request_headers_to_remove": ["authorization"]} if {
	record.namespace == claims.namespace
	not record.revoked
}

headers := {
	"x-sallyport-namespace": claims.namespace,
	"x-sallyport-tenant": claims.tenant,
	"x-sallyport-agent": claims.agent,
	"x-sallyport-session": claims.session,
	"x-sallyport-key-id": claims.jti,
}

record := data.keys[claims.jti]

claims := verified if {
	authorization := input.attributes.request.http.headers.authorization
	startswith(lower(authorization), "bearer ")
	token := substring(authorization, count("bearer "), -1)
	[valid, header, verified] := io.jwt.decode_verify(token, {"cert": data.jwks, "alg": "EdDSA", "iss": "sallyport", "aud": "sallyport"})
	valid
	header.typ == "sallyport-key+jwt"
}
