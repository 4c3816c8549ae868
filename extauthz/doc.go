// Package extauthz is the inner door: it says for every request whether it may pass, and whose data it is about.
//
// Authorizer decides. It takes a plain Request and returns a plain Decision; the clock, the key store and the
// verification keys are given to it. It allows nothing without a verified key and a fresh answer on whether that key was
// revoked. The adapters carry the question and the answer: checkserver over Envoy's gRPC API.
//
// The package does not mint or revoke keys (exchange), and does not know what the data is (a backend).
package extauthz
