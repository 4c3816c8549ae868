// Package kubernetes asks a cluster whose a token is and what holds its pod.
//
// Reviewer verifies tokens by TokenReview, and Cluster reads pods, Sandboxes and claims. Both word what the API server
// says, bound every call in time and number, and decide nothing about memory: package sandbox does. Package watch, below,
// keeps the objects at hand and ends keys with their pods.
package kubernetes
