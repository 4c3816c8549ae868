package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// Agent is whose memory a pod may reach, and through what.
type Agent struct {
	Name    string // the claim's name; without a claim the pod's
	Claim   string // empty without a claim
	Sandbox string // empty for a plain pod
}

// Options of Resolve.
type Options struct {
	RequireClaim bool // refuse pods that no SandboxClaim holds
}

// Resolve says whose memory the subject's pod may reach. It returns a *RefusedError if the answer is nobody's, and any
// other error if the cluster could not be asked.
func Resolve(ctx context.Context, c Cluster, s Subject, opts Options) (Agent, error) {
	if s.PodName == "" || s.PodUID == "" {
		return Agent{}, refuse(NotBoundToPod)
	}
	pod, err := c.Pod(ctx, s.Namespace, s.PodName)
	if err := expect(err, pod.Meta, s.PodUID, PodGone, PodReplaced, PodTerminating); err != nil {
		return Agent{}, err
	}
	if pod.ServiceAccount != s.ServiceAccount {
		return Agent{}, refuse(OtherServiceAccount)
	}
	owner, ok := pod.controller()
	if !ok || owner.Group != GroupAgents || owner.Kind != KindSandbox {
		return plainPod(ctx, c, pod, "", opts)
	}
	return sandboxPod(ctx, c, pod, owner, opts)
}

// sandboxPod follows the link from a pod to the Sandbox that it names as its controller.
func sandboxPod(ctx context.Context, c Cluster, pod Pod, owner Owner, opts Options) (Agent, error) {
	sb, err := c.Sandbox(ctx, pod.Namespace, owner.Name)
	if err := expect(err, sb.Meta, owner.UID, SandboxGone, SandboxReplaced, SandboxTerminating); err != nil {
		return Agent{}, err
	}
	if sb.podName() != pod.Name {
		return Agent{}, refuse(NotTheSandboxesPod)
	}
	parent, ok := sb.controller()
	switch {
	case ok && parent.Group == GroupExtensions && parent.Kind == KindClaim:
		return claimedPod(ctx, c, sb, parent)
	case ok && parent.Group == GroupExtensions && parent.Kind == KindWarmPool, sb.Labels[LabelWarmPool] != "":
		return Agent{}, refuse(InWarmPool)
	default:
		return plainPod(ctx, c, pod, sb.Name, opts)
	}
}

// claimedPod follows the link from a Sandbox to the claim that it names as its controller.
func claimedPod(ctx context.Context, c Cluster, sb Sandbox, owner Owner) (Agent, error) {
	claim, err := c.Claim(ctx, sb.Namespace, owner.Name)
	if err := expect(err, claim.Meta, owner.UID, ClaimGone, ClaimReplaced, ClaimTerminating); err != nil {
		return Agent{}, err
	}
	if claim.SandboxName != "" && claim.SandboxName != sb.Name {
		return Agent{}, refuse(NotTheClaimsSandbox)
	}
	return Agent{Name: claim.Name, Claim: claim.Name, Sandbox: sb.Name}, nil
}

// plainPod names an agent after its pod, but never by a name that a claim in the namespace holds: whoever may create a
// pod may choose its name, and must not reach a claim's memory by it.
func plainPod(ctx context.Context, c Cluster, pod Pod, sandboxName string, opts Options) (Agent, error) {
	if opts.RequireClaim {
		return Agent{}, refuse(NoClaim)
	}
	switch _, err := c.Claim(ctx, pod.Namespace, pod.Name); {
	case err == nil:
		return Agent{}, refuse(NameOfAClaim)
	case !errors.Is(err, ErrNotFound):
		return Agent{}, fmt.Errorf("look for a claim named as the pod: %w", err)
	}
	return Agent{Name: pod.Name, Sandbox: sandboxName}, nil
}

// expect checks one end of a link: the object is there, is the very one that was named, and is not going away.
func expect(err error, m Meta, uid string, gone, replaced, terminating Refusal) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return refuse(gone)
	case err != nil:
		return fmt.Errorf("follow owner references: %w", err)
	case m.UID != uid:
		return refuse(replaced)
	case m.Terminating:
		return refuse(terminating)
	}
	return nil
}
