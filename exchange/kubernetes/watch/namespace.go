package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sallyport/exchange/kubernetes"
	"sallyport/exchange/sandbox"
)

// namespace follows one Kubernetes namespace.
type namespace struct {
	name      string
	log       *slog.Logger
	askAgain  time.Duration // after a refusal for want of permission
	pods      *feed[sandbox.Pod]
	sandboxes *feed[sandbox.Sandbox]
	claims    *feed[sandbox.Claim]
	suspects  func(suspect) // may take any number, and does not wait
	agentOf   func(sandbox.Pod) string
	opened    chan struct{} // a watch has opened
	forbidden atomic.Bool   // the log has it that a watch is not permitted
}

// suspect is a pod whose keys may have to end.
type suspect struct {
	namespace, pod string
	goneUID        string // of a pod that the watch saw go: no further look is needed; empty: look
}

// The indexes.
const (
	bySandbox = "sandbox" // pods by the Sandbox that controls them
	byAgent   = "agent"   // pods by the name that they have without a claim
	byClaim   = "claim"   // Sandboxes by the claim that controls them
)

func newNamespace(opts Options, name string, suspects func(suspect)) (*namespace, error) {
	n := &namespace{
		name: name, log: opts.Log, askAgain: opts.AskAgain, suspects: suspects, opened: make(chan struct{}, 1),
		agentOf: func(p sandbox.Pod) string { return p.AgentName(opts.Rules.AgentLabel) },
	}
	pods, err1 := opts.Client.Pods(name)
	sandboxes, err2 := opts.Client.Sandboxes(name)
	claims, err3 := opts.Client.Claims(name)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	n.pods, err1 = newFeed(pods, n, convertPod, map[string]func(sandbox.Pod) []string{
		bySandbox: func(p sandbox.Pod) []string { return controllerOf(p.Meta, sandbox.GroupAgents, sandbox.KindSandbox) },
		byAgent:   func(p sandbox.Pod) []string { return []string{n.agentOf(p)} },
	}, n.podChanged)
	n.sandboxes, err2 = newFeed(sandboxes, n, convertSandbox, map[string]func(sandbox.Sandbox) []string{
		byClaim: func(s sandbox.Sandbox) []string {
			return controllerOf(s.Meta, sandbox.GroupExtensions, sandbox.KindClaim)
		},
	}, n.sandboxChanged)
	n.claims, err3 = newFeed(claims, n, convertClaim, nil, n.claimChanged)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("watch namespace %s: %w", name, err)
	}
	return n, nil
}

// run follows the namespace until ctx ends.
func (n *namespace) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { n.pods.informer.RunWithContext(ctx) })
	wg.Go(func() { n.sandboxes.informer.RunWithContext(ctx) })
	wg.Go(func() { n.claims.informer.RunWithContext(ctx) })
	wg.Wait()
}

// warm says whether the namespace can be judged from what is at hand.
func (n *namespace) warm() bool { return n.pods.warm() && n.sandboxes.warm() && n.claims.warm() }

// podChanged suspects a pod whose change may matter; most are of its status, and do not.
func (n *namespace) podChanged(before, after *sandbox.Pod) {
	if before != nil && (after == nil || after.UID != before.UID) {
		n.suspects(suspect{namespace: n.name, pod: before.Name, goneUID: before.UID})
		if after == nil {
			return
		}
	}
	if before == nil || !reflect.DeepEqual(before.Meta, after.Meta) {
		n.suspects(suspect{namespace: n.name, pod: after.Name})
	}
}

// sandboxChanged suspects the pods that name the Sandbox.
func (n *namespace) sandboxChanged(before, after *sandbox.Sandbox) {
	if before != nil && after != nil && reflect.DeepEqual(before, after) {
		return
	}
	for _, s := range []*sandbox.Sandbox{before, after} {
		if s != nil {
			n.suspectPodsOf(s.Name)
			return
		}
	}
}

// claimChanged suspects the pods of the Sandboxes that name the claim, and the pods that go by its name without one.
func (n *namespace) claimChanged(before, after *sandbox.Claim) {
	if before != nil && after != nil && reflect.DeepEqual(before, after) {
		return
	}
	for _, c := range []*sandbox.Claim{before, after} {
		if c == nil {
			continue
		}
		for _, s := range n.sandboxes.by(byClaim, c.Name) {
			n.suspectPodsOf(s.Name)
		}
		for _, p := range n.pods.by(byAgent, c.Name) {
			n.suspects(suspect{namespace: n.name, pod: p.Name})
		}
		return
	}
}

func (n *namespace) suspectPodsOf(sandboxName string) {
	for _, p := range n.pods.by(bySandbox, sandboxName) {
		n.suspects(suspect{namespace: n.name, pod: p.Name})
	}
}

func controllerOf(m sandbox.Meta, group, kind string) []string {
	if owner, ok := m.Controller(); ok && owner.Group == group && owner.Kind == kind {
		return []string{owner.Name}
	}
	return nil
}

func convertPod(object any) (metav1.Object, sandbox.Pod, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, sandbox.Pod{}, fmt.Errorf("a pod came as %T", object)
	}
	return m, kubernetes.PodOf(m), nil
}

func convertSandbox(object any) (metav1.Object, sandbox.Sandbox, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, sandbox.Sandbox{}, fmt.Errorf("a Sandbox came as %T", object)
	}
	return u, kubernetes.SandboxOf(u), nil
}

func convertClaim(object any) (metav1.Object, sandbox.Claim, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, sandbox.Claim{}, fmt.Errorf("a claim came as %T", object)
	}
	return u, kubernetes.ClaimOf(u), nil
}

// whenWarm calls f whenever the namespace has become warm, for the first time or after a gap, until ctx ends.
func (n *namespace) whenWarm(ctx context.Context, f func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.opened:
		}
		if n.settles(ctx) {
			n.forbidden.Store(false)
			f()
		}
	}
}

// settles waits until the namespace is warm. It returns false if a watch is not open: when it opens, opened tells.
func (n *namespace) settles(ctx context.Context) bool {
	const every = 10 * time.Millisecond // a list that has arrived is taken in at once
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n.pods.live.Load() && n.sandboxes.live.Load() && n.claims.live.Load() {
		if n.warm() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return false
}

// watchOpened never waits: one notice is as good as many.
func (n *namespace) watchOpened() {
	select {
	case n.opened <- struct{}{}:
	default:
	}
}
