package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Agent is whose memory a pod may reach, and through what.
type Agent struct {
	Tenant  string // the pod's namespace, or what the tenant label says
	Name    string // the claim's name; without a claim what the agent label says, else the pod's name
	Claim   string // empty without a claim
	Sandbox string // empty for a plain pod
	Regime  Regime
	// EndsAt is when the last of the pod's grace is over; zero unless the pod, or what holds it, is being deleted.
	EndsAt time.Time
}

// Options of Resolve.
type Options struct {
	RequireClaim bool // refuse pods that no SandboxClaim holds
	// AllowTerminating serves a pod that is being deleted, or that something which is being deleted holds, until its grace
	// is over: an agent may have to write down what it learned.
	AllowTerminating bool
	// TenantLabel names the label of the service account that says the tenant. Empty: the namespace is the tenant. A service
	// account without the label has none, and is refused: its namespace may be another one's tenant.
	TenantLabel string
	// AgentLabel names the label of a pod without a claim that says the agent's name. Empty: the pod's name.
	AgentLabel string
	// Now is needed for AllowTerminating.
	Now func() time.Time
}

// claimGrace is how long a pod may go on when its Sandbox or claim is deleted, which have no grace period of their own: as
// long as Kubernetes gives a pod by itself.
const claimGrace = 30 * time.Second

// shortestLife is the least that is worth a key, whose times are whole seconds.
const shortestLife = time.Second

// Resolve says whose memory the subject's pod may reach. It returns a *RefusedError if the answer is nobody's, and any
// other error if the cluster could not be asked.
func Resolve(ctx context.Context, c Cluster, s Subject, opts Options) (Agent, error) {
	if s.PodName == "" || s.PodUID == "" {
		return Agent{}, refuse(NotBoundToPod)
	}
	w := walk{cluster: c, opts: opts}
	pod, err := c.Pod(ctx, s.Namespace, s.PodName)
	if err := w.expect(err, pod.Meta, s.PodUID, 0, PodGone, PodReplaced, PodTerminating); err != nil {
		return Agent{}, err
	}
	if pod.Finished {
		return Agent{}, refuse(PodFinished)
	}
	if pod.ServiceAccount != "" && pod.ServiceAccount != s.ServiceAccount {
		return Agent{}, refuse(OtherServiceAccount)
	}
	agent, err := w.pod(ctx, pod)
	if err != nil {
		return Agent{}, err
	}
	agent.Tenant, err = w.tenant(ctx, s)
	agent.EndsAt = w.endsAt
	return agent, err
}

// walk is one way from a pod to what holds it.
type walk struct {
	cluster Cluster
	opts    Options
	endsAt  time.Time // the earliest end of grace met so far
}

func (w *walk) pod(ctx context.Context, pod Pod) (Agent, error) {
	owner, ok := pod.Controller()
	if !ok || owner.Group != GroupAgents || owner.Kind != KindSandbox {
		return w.plainPod(ctx, pod)
	}
	sb, err := w.cluster.Sandbox(ctx, pod.Namespace, owner.Name)
	if err := w.expect(err, sb.Meta, owner.UID, claimGrace, SandboxGone, SandboxReplaced, SandboxTerminating); err != nil {
		return Agent{}, err
	}
	if sb.podName() != pod.Name {
		return Agent{}, refuse(NotTheSandboxesPod)
	}
	parent, ok := sb.Controller()
	switch {
	case ok && parent.Group == GroupExtensions && parent.Kind == KindClaim:
		return w.claimedPod(ctx, sb, parent)
	case ok && parent.Group == GroupExtensions && parent.Kind == KindWarmPool, sb.Labels[LabelWarmPool] != "":
		return Agent{}, refuse(InWarmPool)
	}
	agent, err := w.plainPod(ctx, pod)
	agent.Sandbox, agent.Regime = sb.Name, regime(sb, Claim{})
	return agent, err
}

// claimedPod follows the link from a Sandbox to the claim that it names as its controller.
func (w *walk) claimedPod(ctx context.Context, sb Sandbox, owner Owner) (Agent, error) {
	claim, err := w.cluster.Claim(ctx, sb.Namespace, owner.Name)
	if err := w.expect(err, claim.Meta, owner.UID, claimGrace, ClaimGone, ClaimReplaced, ClaimTerminating); err != nil {
		return Agent{}, err
	}
	if name := claim.sandboxName(); name != "" && name != sb.Name {
		return Agent{}, refuse(NotTheClaimsSandbox)
	}
	return Agent{Name: claim.Name, Claim: claim.Name, Sandbox: sb.Name, Regime: regime(sb, claim)}, nil
}

// plainPod names an agent after its pod, but never by a name that a claim in the namespace holds: whoever may create a
// pod may choose its name and its labels, and must not reach a claim's memory by them.
func (w *walk) plainPod(ctx context.Context, pod Pod) (Agent, error) {
	if w.opts.RequireClaim {
		return Agent{}, refuse(NoClaim)
	}
	name := pod.AgentName(w.opts.AgentLabel)
	switch _, err := w.cluster.Claim(ctx, pod.Namespace, name); {
	case err == nil:
		return Agent{}, refuse(NameOfAClaim)
	case !errors.Is(err, ErrNotFound):
		return Agent{}, fmt.Errorf("look for a claim named as the agent: %w", err)
	}
	return Agent{Name: name}, nil
}

func (w *walk) tenant(ctx context.Context, s Subject) (string, error) {
	if w.opts.TenantLabel == "" {
		return s.Namespace, nil
	}
	account, err := w.cluster.ServiceAccount(ctx, s.Namespace, s.ServiceAccount)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", refuse(AccountGone)
	case err != nil:
		return "", fmt.Errorf("look for the tenant: %w", err)
	case s.ServiceAccountUID != "" && s.ServiceAccountUID != account.UID:
		return "", refuse(AccountReplaced)
	case account.Labels[w.opts.TenantLabel] == "":
		return "", refuse(NoTenant)
	}
	return account.Labels[w.opts.TenantLabel], nil
}

// expect checks one end of a link: the object is there, is the very one that was named, and is not going away. grace is
// what an object's deletionTimestamp leaves out.
func (w *walk) expect(err error, m Meta, uid string, grace time.Duration, gone, replaced, terminating Refusal) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return refuse(gone)
	case err != nil:
		return fmt.Errorf("follow owner references: %w", err)
	case m.UID != uid:
		return refuse(replaced)
	case m.EndsAt.IsZero():
		return nil
	}
	endsAt := m.EndsAt.Add(grace)
	if !w.opts.AllowTerminating || endsAt.Sub(w.opts.Now()) < shortestLife {
		return refuse(terminating)
	}
	if w.endsAt.IsZero() || endsAt.Before(w.endsAt) {
		w.endsAt = endsAt
	}
	return nil
}
