// Package exchange is the outer door: it turns the one credential that a sandbox pod has, its projected service-account
// token, into a key that lives fifteen minutes, and it is where admins list, make and revoke keys.
//
// Exchange decides. Whose a token is, an Authenticator says; PodAuthenticator makes one of a token reviewer (oidc) and of
// what the cluster says about the pod (sandbox). The adapters carry the calls: httpapi over HTTP.
//
// Nothing in a key comes from the caller. The package does not check requests to a backend (extauthz).
package exchange
