// Package watch follows pods, Sandboxes and claims, so that a key ends when its pod does and an exchange need not ask the
// API server what holds a pod.
//
// A key ends when the rules of package sandbox would no longer give it: its pod is gone or replaced, has outlived its grace,
// what holds the pod is gone, or a claim has taken the name that a plain pod went by. What the watches say is a reason to
// look: a key is revoked for a pod that the watch saw deleted, or when the API server itself confirms the rest. Several
// exchanges may do so at once; revoking is idempotent, and nobody leads.
//
// Permission to watch is optional. Without it, in any namespace, keys live to their end, and the log says so once.
package watch
