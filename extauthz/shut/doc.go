// Package shut is for its tests alone: they try, one row at a time, to get past the inner door.
//
// Each row says what a client sends, what it gets, and what the backend saw: exactly the trusted headers of the key and
// nothing of the key itself, or not one byte. Nothing is mocked on the way. A real Envoy asks a real door over a real key
// store, a client writes its own bytes (what net/http would refuse to send is what an attacker sends), and the backend
// keeps all that reaches it.
//
//	headers_test.go         forged trusted headers, in every spelling, under two prefixes
//	authorization_test.go   schemes, several keys, bytes that do not belong
//	tokens_test.go          hostile tokens
//	kids_test.go            a flood of invented signing keys
//	paths_test.go           path tricks
//	streams_test.go         upgrades and streams
//	outages_test.go         a door that is slow, away, or restarted
//	garbage_test.go         a door that answers garbage
//	clocks_test.go          clocks that differ
//	overhttp_test.go        the same tables where the gateway asks over HTTP
//	replicas_test.go        two replicas on one PostgreSQL
//
// How Envoy itself is configured is tested in package envoy, the decision without a network in package extauthz, and the
// processes that are put together from these parts in cmd/sallyport.
package shut
