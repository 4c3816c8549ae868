// Package gateway is the contract between a gateway that knows who is calling and a backend that does not want to.
//
// The gateway (Envoy with ext_authz, see package extauthz) checks the caller's key and then tells the backend, in
// headers that nobody else can set, whose data the request is about. The backend wraps its handler in Middleware and
// reads the Identity from the request's context:
//
//	err := gateway.CheckTrust("unix:/run/sallyport/memory.sock", nil) // can others reach it?
//	...
//	http.Serve(listener, gateway.Middleware(gateway.DefaultHeaders(), handler))
//
// The package depends on the standard library alone, so that a backend takes nothing else on with it. It does not
// verify keys or tokens, does not talk to Envoy, and does not decide who may do what: it only carries what the gateway
// decided, and refuses a request on which the gateway said nothing.
package gateway
