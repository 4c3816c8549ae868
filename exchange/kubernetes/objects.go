package kubernetes

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sallyport/exchange/sandbox"
)

// pod is what is read of a pod.
type pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

func (p pod) pod() sandbox.Pod {
	return sandbox.Pod{
		Meta:     object{ObjectMeta: p.ObjectMeta}.meta(),
		Finished: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
}

// object is what is read of a Sandbox, a claim or a service account. Of a service account the API server is asked for the
// metadata alone. Versions of the APIs that are served today agree on these fields.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		WarmPoolRef struct {
			Name string `json:"name"`
		} `json:"warmPoolRef"`
		Env                  []json.RawMessage `json:"env"`
		VolumeClaimTemplates []json.RawMessage `json:"volumeClaimTemplates"`
	} `json:"spec"`
	Status struct {
		Sandbox struct {
			Name string `json:"name"`
		} `json:"sandbox"`
	} `json:"status"`
}

func (o object) meta() sandbox.Meta {
	m := sandbox.Meta{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Labels: o.Labels,
		Owners: make([]sandbox.Owner, 0, len(o.OwnerReferences)),
	}
	// Annotations may be large, and change often: only those that count are kept.
	for _, name := range []string{sandbox.AnnotationPodName, sandbox.AnnotationSandboxName} {
		if value, ok := o.Annotations[name]; ok {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[name] = value
		}
	}
	if o.DeletionTimestamp != nil {
		m.EndsAt = o.DeletionTimestamp.Time
	}
	for _, r := range o.OwnerReferences {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			continue // of no group that there is
		}
		m.Owners = append(m.Owners, sandbox.Owner{
			Group: gv.Group, Kind: r.Kind, Name: r.Name, UID: string(r.UID), Controller: r.Controller != nil && *r.Controller,
		})
	}
	return m
}

func (o object) sandbox() sandbox.Sandbox {
	return sandbox.Sandbox{Meta: o.meta(), Disk: len(o.Spec.VolumeClaimTemplates) > 0}
}

func (o object) claim() sandbox.Claim {
	return sandbox.Claim{
		Meta: o.meta(), SandboxName: o.Status.Sandbox.Name, Pool: o.Spec.WarmPoolRef.Name,
		Env: len(o.Spec.Env) > 0, Disk: len(o.Spec.VolumeClaimTemplates) > 0,
	}
}
