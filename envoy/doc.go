// Package envoy finds the Envoy binary and runs it as a child of this process.
//
//	s, err := envoy.New(envoy.Config{Gateway: g, Logger: logger})
//	...
//	go func() { done <- s.Run(ctx) }()
//	<-s.Ready() // s.Addr() is where callers reach it
//
// A Supervisor starts Envoy with the configuration that gateway/xds makes of a Gateway, waits until it answers, starts it
// again when it dies, drains it when the context ends, and leaves no process and no file behind: the configuration goes
// through a pipe, and where the system can do it (Linux), the kernel ends Envoy when this process dies.
//
// The package does not decide what the configuration says, does not download Envoy, and does not run in production
// clusters, where Envoy has a container of its own: sidecar.yaml beside this file is for those, and istio and envoy-gateway
// hold what to add to an Envoy that somebody else configures.
package envoy
