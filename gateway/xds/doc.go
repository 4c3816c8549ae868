// Package xds turns one short description of a gateway into Envoy's configuration.
//
//	g, err := xds.ReadFile("gateway.yaml")
//	...
//	yaml, err := xds.Render(g)
//
// A Gateway says where Envoy listens, where the backend and the two doors are, and which of the backend's paths need a
// key; every setting that a careful operator would add is added here, each with its reason beside it. Listener, Routes
// and Clusters build their parts separately, so that the same parts can be printed as one static file (Bootstrap,
// Render) or served one by one over xDS. What asks for the key is built in one place (door.go), so that another
// way of asking can take its place.
//
// The package does not start Envoy (see package envoy), does not serve xDS, and decides nothing about requests.
package xds
