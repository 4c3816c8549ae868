package devcluster

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"sallyport/exchange/sandbox"
)

// PodSpec says which pod there should be.
type PodSpec struct {
	Namespace      string
	Name           string
	ServiceAccount string
	Claim          string // the claim that holds it; made if there is none
	WarmPool       string // the pool that it waits in
}

// nameForm is a DNS-1123 subdomain, which object names are.
var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (s PodSpec) validate() error {
	if s.Claim != "" && s.WarmPool != "" {
		return errors.New("a pod is held by a claim or waits in a warm pool, not both")
	}
	for _, f := range []struct{ what, name string }{
		{"namespace", s.Namespace}, {"pod", s.Name}, {"service account", s.ServiceAccount}, {"claim", s.Claim}, {"warm pool", s.WarmPool},
	} {
		optional := f.what == "claim" || f.what == "warm pool"
		if (f.name != "" || !optional) && !nameForm.MatchString(f.name) {
			return fmt.Errorf("%s name %q is not a Kubernetes name, which has lower-case letters, digits, hyphens and dots", f.what, f.name)
		}
	}
	return nil
}

// EnsurePod makes the pod known, with the Sandbox and the claim or pool that it belongs to, unless it is known already.
func (c *Cluster) EnsurePod(ctx context.Context, s PodSpec) (sandbox.Pod, error) {
	if err := s.validate(); err != nil {
		return sandbox.Pod{}, err
	}
	var pod sandbox.Pod
	err := c.update(ctx, func(tx change) (err error) {
		pod, err = get[sandbox.Pod](ctx, tx.tx, kindPod, s.Namespace, s.Name)
		switch {
		case err == nil:
			return matches(ctx, tx, pod, s)
		case !errors.Is(err, sandbox.ErrNotFound):
			return err
		}
		pod, err = create(ctx, tx, s)
		return err
	})
	return pod, err
}

// matches refuses to hand out an existing pod as another one than was asked for.
func matches(ctx context.Context, tx change, pod sandbox.Pod, s PodSpec) error {
	if pod.ServiceAccount != s.ServiceAccount {
		return fmt.Errorf("pod %s/%s exists and runs under service account %q: delete it first, or name that one", s.Namespace, s.Name, pod.ServiceAccount)
	}
	if s.Claim == "" {
		return nil // whatever holds it now: the token is the pod's
	}
	for _, owner := range pod.Owners {
		sb, err := get[sandbox.Sandbox](ctx, tx.tx, kindSandbox, s.Namespace, owner.Name)
		if err == nil && len(sb.Owners) > 0 && sb.Owners[0].Kind == kindClaim && sb.Owners[0].Name == s.Claim {
			return nil
		}
	}
	return fmt.Errorf("pod %s/%s exists and claim %q does not hold it: `dev claim take` gives it to a claim, `dev pod delete` removes it", s.Namespace, s.Name, s.Claim)
}

func create(ctx context.Context, tx change, s PodSpec) (sandbox.Pod, error) {
	pod := sandbox.Pod{Meta: newMeta(s.Namespace, s.Name), ServiceAccount: s.ServiceAccount}
	switch {
	case s.Claim != "":
		sb, err := claimedSandbox(ctx, tx, s)
		if err != nil {
			return pod, err
		}
		pod.Owners = ownedBy(sandbox.GroupAgents, kindSandbox, sb.Meta)
	case s.WarmPool != "":
		sb := sandbox.Sandbox{Meta: newMeta(s.Namespace, s.Name)}
		sb.Owners = []sandbox.Owner{{Group: sandbox.GroupExtensions, Kind: sandbox.KindWarmPool, Name: s.WarmPool, UID: uuid.NewString(), Controller: true}}
		sb.Labels = map[string]string{sandbox.LabelWarmPool: s.WarmPool}
		if err := tx.put(ctx, kindSandbox, sb.Meta, sb); err != nil {
			return pod, err
		}
		pod.Owners = ownedBy(sandbox.GroupAgents, kindSandbox, sb.Meta)
		pod.Labels = map[string]string{sandbox.LabelWarmPool: s.WarmPool}
	}
	return pod, tx.put(ctx, kindPod, pod.Meta, pod)
}

// claimedSandbox makes what a cold start makes: the claim, unless it is there, and a Sandbox of its name for the pod.
func claimedSandbox(ctx context.Context, tx change, s PodSpec) (sandbox.Sandbox, error) {
	claim, err := get[sandbox.Claim](ctx, tx.tx, kindClaim, s.Namespace, s.Claim)
	if errors.Is(err, sandbox.ErrNotFound) {
		claim = sandbox.Claim{Meta: newMeta(s.Namespace, s.Claim), SandboxName: s.Claim}
		err = tx.put(ctx, kindClaim, claim.Meta, claim)
	}
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	sb, err := get[sandbox.Sandbox](ctx, tx.tx, kindSandbox, s.Namespace, claim.SandboxName)
	switch {
	case err == nil && heldBy(sb, claim):
		// A pod of the same Sandbox, made again: only once the one before is gone.
		before := sb.Annotations[sandbox.AnnotationPodName]
		if _, err := get[sandbox.Pod](ctx, tx.tx, kindPod, s.Namespace, before); !errors.Is(err, sandbox.ErrNotFound) {
			return sb, errors.Join(fmt.Errorf("claim %s/%s already runs pod %q: delete the pod or the claim first", s.Namespace, s.Claim, before), err)
		}
	case err == nil || errors.Is(err, sandbox.ErrNotFound):
		sb = sandbox.Sandbox{Meta: newMeta(s.Namespace, claim.SandboxName)}
		sb.Owners = ownedBy(sandbox.GroupExtensions, kindClaim, claim.Meta)
	default:
		return sb, err
	}
	sb.Annotations = map[string]string{sandbox.AnnotationPodName: s.Name}
	return sb, tx.put(ctx, kindSandbox, sb.Meta, sb)
}

func heldBy(sb sandbox.Sandbox, claim sandbox.Claim) bool {
	return len(sb.Owners) == 1 && sb.Owners[0].Kind == kindClaim && sb.Owners[0].UID == claim.UID
}

// TakeClaim gives a pod that waits in a warm pool to a claim, which is made if there is none: the Sandbox changes its owner,
// the pod goes on running.
func (c *Cluster) TakeClaim(ctx context.Context, namespace, claimName, podName string) error {
	if err := (PodSpec{Namespace: namespace, Name: podName, ServiceAccount: "any", Claim: claimName}).validate(); err != nil {
		return err
	}
	return c.update(ctx, func(tx change) error {
		pod, err := get[sandbox.Pod](ctx, tx.tx, kindPod, namespace, podName)
		if errors.Is(err, sandbox.ErrNotFound) {
			return fmt.Errorf("pod %s/%s does not exist: `dev token --warm-pool POOL` makes one", namespace, podName)
		}
		if err != nil {
			return err
		}
		if pod.Labels[sandbox.LabelWarmPool] == "" || len(pod.Owners) == 0 {
			return fmt.Errorf("pod %s/%s does not wait in a warm pool", namespace, podName)
		}
		sb, err := get[sandbox.Sandbox](ctx, tx.tx, kindSandbox, namespace, pod.Owners[0].Name)
		if err != nil {
			return err
		}
		if _, err := get[sandbox.Claim](ctx, tx.tx, kindClaim, namespace, claimName); !errors.Is(err, sandbox.ErrNotFound) {
			return errors.Join(fmt.Errorf("claim %s/%s exists: delete it first, a claim holds one pod", namespace, claimName), err)
		}
		claim := sandbox.Claim{Meta: newMeta(namespace, claimName), SandboxName: sb.Name}
		sb.Owners = ownedBy(sandbox.GroupExtensions, kindClaim, claim.Meta)
		delete(sb.Labels, sandbox.LabelWarmPool)
		delete(pod.Labels, sandbox.LabelWarmPool)
		sb.Annotations = map[string]string{sandbox.AnnotationPodName: pod.Name}
		return errors.Join(tx.put(ctx, kindClaim, claim.Meta, claim), tx.put(ctx, kindSandbox, sb.Meta, sb), tx.put(ctx, kindPod, pod.Meta, pod))
	})
}

// DeleteClaim deletes a claim. Its Sandbox and pod stay, as they do in a cluster until the garbage collector comes: a
// leftover pod must get no key all the same.
func (c *Cluster) DeleteClaim(ctx context.Context, namespace, name string) error {
	return c.update(ctx, func(tx change) error { return tx.delete(ctx, kindClaim, namespace, name) })
}

// DeletePod deletes a pod.
func (c *Cluster) DeletePod(ctx context.Context, namespace, name string) error {
	return c.update(ctx, func(tx change) error { return tx.delete(ctx, kindPod, namespace, name) })
}

func newMeta(namespace, name string) sandbox.Meta {
	return sandbox.Meta{Namespace: namespace, Name: name, UID: uuid.NewString()}
}

func ownedBy(group, kind string, m sandbox.Meta) []sandbox.Owner {
	return []sandbox.Owner{{Group: group, Kind: kind, Name: m.Name, UID: m.UID, Controller: true}}
}
