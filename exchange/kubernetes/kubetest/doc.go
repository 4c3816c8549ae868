// Package kubetest runs a real Kubernetes API for tests: an etcd and a kube-apiserver on loopback, both built from their
// Go modules by `make kube-tools`, with the custom resources of kubernetes-sigs/agent-sandbox.
//
// There is no kubelet, no scheduler, no garbage collector and no agent-sandbox controller: a test makes and removes the
// objects that they would, in whatever order it wants to try. Nothing outlives the test process, however it ends.
package kubetest
