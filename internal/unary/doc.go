// Package unary serves unary gRPC calls over cleartext HTTP/2, for a service that is asked about every request of others.
//
// grpc-go serves any kind of call, and passes each through three goroutines. Where an answer is found in memory in a few
// microseconds, those hand-overs and their wake-ups are most of what a call costs (docs/performance.md). Here the goroutine
// that reads a connection answers what can be answered at once, and sends all answers that it owes before it waits for more;
// what has to wait gets a goroutine of its own.
//
// Frames and header compression are golang.org/x/net/http2's. Here are streams, flow control, limits (RFC 9113) and what
// gRPC lays on top (grpc/doc/PROTOCOL-HTTP2.md). There are no streaming calls, no message compression and no TLS: a service
// that needs those is grpc-go's.
package unary
