// Package tuning lets the people on call see how the inner door's caches do, and change them while it runs: over HTTP, on a
// unix socket that only the door's own user can reach.
//
// It decides nothing about requests and holds no state of its own.
package tuning
