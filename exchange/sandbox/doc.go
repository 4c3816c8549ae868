// Package sandbox says whose memory a pod may reach: it follows the owner references Pod → Sandbox → SandboxClaim
// (kubernetes-sigs/agent-sandbox) and believes a link only if both of its ends agree.
//
// The rules are the same for a real cluster and for the development one: what differs is the Cluster they are read from.
// The package does not verify tokens and does not talk to Kubernetes.
package sandbox
