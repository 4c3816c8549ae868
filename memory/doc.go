// Package memory is the backend behind the gateway: what an agent was told and when, and what it was doing.
//
// A Service does the operations of the Memory API, each for a Caller whose namespace the gateway vouched for. The rules
// live in the packages below it, which touch nothing: belief (events, and what is believed because of them) and agent
// (records, leases, briefings). What is kept is kept by a Store, which this package owns the interface of.
//
// It verifies no key and knows no HTTP. Package api carries it over HTTP.
package memory
