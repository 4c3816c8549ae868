package kubetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// callTimeout bounds each call of a test's own.
const callTimeout = 20 * time.Second

var namespaces atomic.Int64

// Namespace is one test's part of the cluster. Its methods end the test when they fail.
type Namespace struct {
	Name string
	c    *Cluster
	t    testing.TB
}

// Namespace makes a new namespace with a service account "default". The exchange has no permission in it (see Allow).
func (c *Cluster) Namespace(t testing.TB) *Namespace {
	t.Helper()
	n := &Namespace{Name: fmt.Sprintf("agents-%d", namespaces.Add(1)), c: c, t: t}
	n.Call("make namespace", func(ctx context.Context) error {
		_, err := c.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{})
		return err
	})
	n.ServiceAccount("default", nil)
	return n
}

// Call makes a call of the test's own, with a bound on its time.
func (n *Namespace) Call(what string, f func(ctx context.Context) error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		n.t.Fatalf("%s: %v", what, err)
	}
}

// ServiceAccount makes a service account with labels.
func (n *Namespace) ServiceAccount(name string, labels map[string]string) {
	n.t.Helper()
	n.Call("make service account", func(ctx context.Context) error {
		_, err := n.c.Admin.CoreV1().ServiceAccounts(n.Name).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		return err
	})
}

// Object is the reference to an object that exists.
type Object struct {
	Kind    string
	Name    string
	UID     types.UID
	Version string // of the API through which it was made
}

// Owner is o as a controller owner reference.
func (o Object) Owner() metav1.OwnerReference {
	yes := true
	gv := resourceOf(o.Kind, o.Version).GroupVersion()
	return metav1.OwnerReference{APIVersion: gv.String(), Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: &yes}
}

// Mold changes an object before it is made.
type Mold func(*unstructured.Unstructured)

// OwnedBy sets the owner references.
func OwnedBy(owners ...metav1.OwnerReference) Mold {
	return func(u *unstructured.Unstructured) { u.SetOwnerReferences(owners) }
}

// Labels sets the labels.
func Labels(labels map[string]string) Mold {
	return func(u *unstructured.Unstructured) { u.SetLabels(labels) }
}

// Annotations sets the annotations.
func Annotations(annotations map[string]string) Mold {
	return func(u *unstructured.Unstructured) { u.SetAnnotations(annotations) }
}

// Finalizer keeps the object when it is deleted.
func Finalizer(name string) Mold {
	return func(u *unstructured.Unstructured) { u.SetFinalizers([]string{name}) }
}

// Spec sets one field of the spec.
func Spec(value any, path ...string) Mold {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, append([]string{"spec"}, path...)...); err != nil {
			panic(err) // the test gave a value that no JSON has
		}
	}
}

// Make makes a custom resource through the stored version of its API.
func (n *Namespace) Make(kind, name string, molds ...Mold) Object {
	n.t.Helper()
	return n.MakeIn(stored, kind, name, molds...)
}

// MakeIn makes a custom resource through one version of its API.
func (n *Namespace) MakeIn(version, kind, name string, molds ...Mold) Object {
	n.t.Helper()
	gvr := resourceOf(kind, version)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetAPIVersion(gvr.GroupVersion().String())
	u.SetKind(kind)
	u.SetName(name)
	for _, mold := range molds {
		mold(u)
	}
	n.Call("make "+kind+" "+name, func(ctx context.Context) (err error) {
		u, err = n.c.Dynamic.Resource(gvr).Namespace(n.Name).Create(ctx, u, metav1.CreateOptions{})
		return err
	})
	return Object{Kind: kind, Name: name, UID: u.GetUID(), Version: version}
}

// Change changes a custom resource, its status included.
func (n *Namespace) Change(o Object, change func(*unstructured.Unstructured)) {
	n.t.Helper()
	objects := n.c.Dynamic.Resource(resourceOf(o.Kind, o.Version)).Namespace(n.Name)
	n.Call("change "+o.Kind+" "+o.Name, func(ctx context.Context) error {
		for {
			u, err := objects.Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(u)
			status, hasStatus := u.Object["status"]
			if u, err = objects.Update(ctx, u, metav1.UpdateOptions{}); err == nil && hasStatus {
				u.Object["status"] = status
				_, err = objects.UpdateStatus(ctx, u, metav1.UpdateOptions{})
			}
			if !apierrors.IsConflict(err) {
				return err
			}
		}
	})
}

// SetSandbox sets a claim's status.sandbox.name, as the controller does a moment after the claim has its Sandbox.
func (n *Namespace) SetSandbox(claim Object, sandbox string) {
	n.t.Helper()
	n.Change(claim, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"sandbox": map[string]any{"name": sandbox}}
	})
}

// Delete deletes a custom resource.
func (n *Namespace) Delete(o Object) {
	n.t.Helper()
	n.Call("delete "+o.Kind+" "+o.Name, func(ctx context.Context) error {
		return n.c.Dynamic.Resource(resourceOf(o.Kind, o.Version)).Namespace(n.Name).Delete(ctx, o.Name, metav1.DeleteOptions{})
	})
}

// Pod makes a pod that runs as the service account; owners are its owner references.
func (n *Namespace) Pod(name, serviceAccount string, owners ...metav1.OwnerReference) *corev1.Pod {
	n.t.Helper()
	return n.MakePod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
		Spec:       corev1.PodSpec{ServiceAccountName: serviceAccount},
	})
}

// MakePod makes a pod; the container is filled in.
func (n *Namespace) MakePod(pod *corev1.Pod) *corev1.Pod {
	n.t.Helper()
	no := false
	pod.Spec.AutomountServiceAccountToken = &no // as agent-sandbox has it
	pod.Spec.Containers = []corev1.Container{{Name: "agent", Image: "agent:1"}}
	n.Call("make pod "+pod.Name, func(ctx context.Context) (err error) {
		pod, err = n.c.Admin.CoreV1().Pods(n.Name).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	return pod
}

// ChangePod changes a pod.
func (n *Namespace) ChangePod(name string, change func(*corev1.Pod)) {
	n.t.Helper()
	pods := n.c.Admin.CoreV1().Pods(n.Name)
	n.Call("change pod "+name, func(ctx context.Context) error {
		for {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(pod)
			if _, err = pods.Update(ctx, pod, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				return err
			}
		}
	})
}

// Finish makes a pod one whose containers have ended, as the kubelet would.
func (n *Namespace) Finish(name string, phase corev1.PodPhase) {
	n.t.Helper()
	pods := n.c.Admin.CoreV1().Pods(n.Name)
	n.Call("finish pod "+name, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = phase
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
}

// DeletePod deletes a pod with a grace period. One that has no node goes at once, whatever the period.
func (n *Namespace) DeletePod(name string, grace time.Duration) {
	n.t.Helper()
	seconds := int64(grace / time.Second)
	n.Call("delete pod "+name, func(ctx context.Context) error {
		return n.c.Admin.CoreV1().Pods(n.Name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
	})
}

// Token returns the token that the kubelet would project into the pod, for the audiences.
func (n *Namespace) Token(pod *corev1.Pod, audiences ...string) string {
	n.t.Helper()
	return n.TokenFor(pod.Spec.ServiceAccountName, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	}, audiences...)
}

// TokenFor returns a token of a service account, bound to an object or to none.
func (n *Namespace) TokenFor(serviceAccount string, bound *authenticationv1.BoundObjectReference, audiences ...string) string {
	n.t.Helper()
	life := int64(time.Hour / time.Second)
	var token string
	n.Call("request token", func(ctx context.Context) error {
		r, err := n.c.Admin.CoreV1().ServiceAccounts(n.Name).CreateToken(ctx, serviceAccount, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &life, BoundObjectRef: bound},
		}, metav1.CreateOptions{})
		if err == nil {
			token = r.Status.Token
		}
		return err
	})
	return token
}
