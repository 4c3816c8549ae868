// Package devcluster is the stand-in for a Kubernetes cluster on a laptop: a file with pods, Sandboxes and claims, and an
// issuer that makes the tokens that a kubelet would project into the pods.
//
// Only the objects and the signatures are stand-ins. Tokens are verified by package oidc and owners followed by package
// sandbox, as for a real cluster. The issuer's private key lies in the directory, readable by its owner: whoever can read
// it can be any pod, which is right for a laptop and for nothing else.
package devcluster
