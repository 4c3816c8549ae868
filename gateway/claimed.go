package gateway

// ClaimedPrefix begins the names under which Envoy shows the authorization server what a client wrote into the trusted
// headers. The trusted headers themselves are removed before any filter runs, so that nothing forged can survive even a
// check that fails open; the copies let the server still answer a contradiction with 403 instead of passing over it.
//
// It does not follow the trusted prefix when an operator changes that, and no trusted prefix may cover it.
const ClaimedPrefix = "sallyport-claimed-"

// ClaimedHeaders names the copies: Namespace is "sallyport-claimed-namespace", and so on. Their values are a client's
// words: compare them, never believe them. The server names all of them in headers_to_remove when it allows a request.
func ClaimedHeaders() Headers {
	return namesUnder(ClaimedPrefix)
}
