package kubetest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What agent-sandbox puts on its objects.
const (
	PodNameAnnotation = "agents.x-k8s.io/pod-name"
	WarmPoolLabel     = "agents.x-k8s.io/warm-pool-sandbox"
	LaunchTypeLabel   = "agents.x-k8s.io/launch-type"
)

// Chain is a pod with what holds it.
type Chain struct {
	Claim   Object
	Sandbox Object
	Pod     *corev1.Pod
}

// Cold makes what a cold start makes: a claim, a Sandbox of its name, and a pod of that name.
func (n *Namespace) Cold(name string, claimMolds ...Mold) Chain {
	n.t.Helper()
	return n.ColdIn(stored, name, claimMolds...)
}

// ColdIn is Cold through one version of the APIs.
func (n *Namespace) ColdIn(version, name string, claimMolds ...Mold) Chain {
	n.t.Helper()
	c := Chain{Claim: n.MakeIn(version, "SandboxClaim", name, claimMolds...)}
	c.Sandbox = n.MakeIn(version, "Sandbox", name, OwnedBy(c.Claim.Owner()), Labels(map[string]string{LaunchTypeLabel: "cold"}))
	c.Pod = n.Pod(name, "default", c.Sandbox.Owner())
	n.SetSandbox(c.Claim, name)
	return c
}

// Warm makes a pod that waits in a pool, in a Sandbox of its name.
func (n *Namespace) Warm(pool, name string) Chain {
	n.t.Helper()
	owner := n.Make("SandboxWarmPool", pool+"-of-"+name)
	c := Chain{Sandbox: n.Make("Sandbox", name, OwnedBy(owner.Owner()), Labels(map[string]string{WarmPoolLabel: pool, LaunchTypeLabel: "warm"}))}
	c.Pod = n.MakePod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{WarmPoolLabel: pool}, OwnerReferences: []metav1.OwnerReference{c.Sandbox.Owner()}},
		Spec:       corev1.PodSpec{ServiceAccountName: "default"},
	})
	return c
}

// Adopt gives a pod that waits in a pool to a new claim: the Sandbox changes its owner, the pod goes on running. The
// claim's status is not set yet, as it is for a moment after every adoption.
func (n *Namespace) Adopt(c Chain, claim string, molds ...Mold) Chain {
	n.t.Helper()
	c.Claim = n.Make("SandboxClaim", claim, molds...)
	n.Change(c.Sandbox, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{c.Claim.Owner()})
		u.SetLabels(map[string]string{LaunchTypeLabel: "warm", "agents.x-k8s.io/claim-uid": string(c.Claim.UID)})
		u.SetAnnotations(map[string]string{PodNameAnnotation: c.Pod.Name})
	})
	n.ChangePod(c.Pod.Name, func(p *corev1.Pod) { delete(p.Labels, WarmPoolLabel) })
	return c
}
