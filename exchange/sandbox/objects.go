package sandbox

import (
	"context"
	"errors"
	"time"
)

// API groups and kinds of kubernetes-sigs/agent-sandbox. Versions do not count: v1alpha1 and v1beta1 objects are the same
// objects.
const (
	GroupAgents     = "agents.x-k8s.io"
	GroupExtensions = "extensions.agents.x-k8s.io"

	KindSandbox  = "Sandbox"
	KindClaim    = "SandboxClaim"
	KindWarmPool = "SandboxWarmPool"

	// AnnotationPodName names the pod of a Sandbox that adopted one; without it the pod has the Sandbox's name.
	AnnotationPodName = "agents.x-k8s.io/pod-name"
	// AnnotationSandboxName names the Sandbox of a claim before its status does.
	AnnotationSandboxName = "agents.x-k8s.io/sandbox-name"
	// LabelWarmPool is on a Sandbox, and its pod, that wait in a warm pool.
	LabelWarmPool = "agents.x-k8s.io/warm-pool-sandbox"
	// LabelLaunchType says whether a Sandbox came out of a warm pool: warm or cold.
	LabelLaunchType = "agents.x-k8s.io/launch-type"
)

// Subject is who a verified token says it is.
type Subject struct {
	Namespace         string // of the service account and of the pod
	ServiceAccount    string
	ServiceAccountUID string // empty if the token does not say
	PodName           string // empty if the token is not bound to a pod
	PodUID            string
}

// Meta is what all objects have.
type Meta struct {
	Namespace   string
	Name        string
	UID         string
	Owners      []Owner
	Labels      map[string]string
	Annotations map[string]string
	// EndsAt is the deletionTimestamp: when the grace of an object that is being deleted ends. Zero: nobody deletes it.
	EndsAt time.Time
}

// Owner is an owner reference.
type Owner struct {
	Group      string // of its apiVersion
	Kind       string
	Name       string
	UID        string
	Controller bool
}

// Pod is a pod, as far as it matters here.
type Pod struct {
	Meta
	// ServiceAccount is empty if only the pod's metadata were read. An API server makes a pod's token for the pod's own
	// service account alone; where it is known it is compared all the same.
	ServiceAccount string
	// Finished says that its containers have ended for good: its phase is Succeeded or Failed.
	Finished bool
}

// ServiceAccount is a service account, as far as it matters here.
type ServiceAccount struct{ Meta }

// Sandbox is a Sandbox, as far as it matters here.
type Sandbox struct {
	Meta
	Disk bool // spec.volumeClaimTemplates: it has volumes that outlive its pod
}

// Claim is a SandboxClaim, as far as it matters here.
type Claim struct {
	Meta
	SandboxName string // status.sandbox.name; empty until the controller has set it
	Pool        string // spec.warmPoolRef.name
	Env         bool   // spec.env: the pod cannot come out of a pool
	Disk        bool   // spec.volumeClaimTemplates
}

// ErrNotFound says that an object does not exist.
var ErrNotFound = errors.New("object not found")

// Cluster reads objects. A missing object is ErrNotFound; any other error means that nothing is known.
type Cluster interface {
	Pod(ctx context.Context, namespace, name string) (Pod, error)
	ServiceAccount(ctx context.Context, namespace, name string) (ServiceAccount, error)
	Sandbox(ctx context.Context, namespace, name string) (Sandbox, error)
	Claim(ctx context.Context, namespace, name string) (Claim, error)
}

// Controller returns the controller owner reference; Kubernetes allows one at the most.
func (m Meta) Controller() (Owner, bool) {
	for _, o := range m.Owners {
		if o.Controller {
			return o, true
		}
	}
	return Owner{}, false
}

// AgentName is what a pod without a claim goes by: what the label says, else its name.
func (p Pod) AgentName(label string) string {
	if name := p.Labels[label]; label != "" && name != "" {
		return name
	}
	return p.Name
}

// podName is the pod that a Sandbox says is its own.
func (s Sandbox) podName() string {
	if name := s.Annotations[AnnotationPodName]; name != "" {
		return name
	}
	return s.Name
}

// sandboxName is the Sandbox that a claim says is its own, or empty while it does not say.
func (c Claim) sandboxName() string {
	if c.SandboxName != "" {
		return c.SandboxName
	}
	return c.Annotations[AnnotationSandboxName]
}
