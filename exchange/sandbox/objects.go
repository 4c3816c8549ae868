package sandbox

import (
	"context"
	"errors"
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
	// LabelWarmPool is on a Sandbox, and its pod, that wait in a warm pool.
	LabelWarmPool = "agents.x-k8s.io/warm-pool-sandbox"
)

// Subject is who a verified token says it is.
type Subject struct {
	Namespace      string // of the service account and of the pod
	ServiceAccount string
	PodName        string // empty if the token is not bound to a pod
	PodUID         string
}

// Meta is what all objects have.
type Meta struct {
	Namespace   string
	Name        string
	UID         string
	Owners      []Owner
	Labels      map[string]string
	Annotations map[string]string
	Terminating bool // a deletionTimestamp is set
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
	ServiceAccount string
}

// Sandbox is a Sandbox, as far as it matters here.
type Sandbox struct{ Meta }

// Claim is a SandboxClaim, as far as it matters here.
type Claim struct {
	Meta
	SandboxName string // status.sandbox.name; empty until the controller has set it
}

// ErrNotFound says that an object does not exist.
var ErrNotFound = errors.New("object not found")

// Cluster reads objects. A missing object is ErrNotFound; any other error means that nothing is known.
type Cluster interface {
	Pod(ctx context.Context, namespace, name string) (Pod, error)
	Sandbox(ctx context.Context, namespace, name string) (Sandbox, error)
	Claim(ctx context.Context, namespace, name string) (Claim, error)
}

// controller returns the controller owner reference; Kubernetes allows one at the most.
func (m Meta) controller() (Owner, bool) {
	for _, o := range m.Owners {
		if o.Controller {
			return o, true
		}
	}
	return Owner{}, false
}

// podName is the pod that a Sandbox says is its own.
func (s Sandbox) podName() string {
	if name := s.Annotations[AnnotationPodName]; name != "" {
		return name
	}
	return s.Name
}
