package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"sallyport/exchange/sandbox"
)

// What watches may ask of the API server: they begin rarely, and must not wait behind a flood of exchanges.
const (
	watchQPS   = 20
	watchBurst = 60
)

// ListWatch lists and watches one kind of object in one namespace.
type ListWatch struct {
	Resource string         // for people
	Example  runtime.Object // what List and Watch give
	List     func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	Watch    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// unfinished selects the pods in which something may run yet. One that finishes goes from a watch as one that is deleted.
const unfinished = "status.phase!=Succeeded,status.phase!=Failed"

// Pods lists and watches the metadata of the pods of a namespace that have not finished; PodOf reads them.
func (c *Client) Pods(namespace string) (ListWatch, error) {
	config := rest.CopyConfig(c.watching)
	all, err := metadata.NewForConfigAndClient(config, c.http)
	if err != nil {
		return ListWatch{}, fmt.Errorf("make Kubernetes client: %w", err)
	}
	pods := all.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	return ListWatch{
		Resource: "pods",
		Example:  &metav1.PartialObjectMetadata{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = unfinished
			return pods.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = unfinished
			return pods.Watch(ctx, o)
		},
	}, nil
}

// Sandboxes lists and watches the Sandboxes of a namespace; SandboxOf reads them.
func (c *Client) Sandboxes(namespace string) (ListWatch, error) {
	return c.customListWatch(sandboxes, namespace)
}

// Claims lists and watches the SandboxClaims of a namespace; ClaimOf reads them.
func (c *Client) Claims(namespace string) (ListWatch, error) {
	return c.customListWatch(claims, namespace)
}

// PodOf reads a pod of Pods.
func PodOf(m *metav1.PartialObjectMetadata) sandbox.Pod {
	return sandbox.Pod{Meta: object{ObjectMeta: m.ObjectMeta}.meta()}
}

// SandboxOf reads a Sandbox of Sandboxes.
func SandboxOf(u *unstructured.Unstructured) sandbox.Sandbox { return read(u).sandbox() }

// ClaimOf reads a claim of Claims.
func ClaimOf(u *unstructured.Unstructured) sandbox.Claim { return read(u).claim() }

// unreadable is no Sandbox's name, so that nothing fits a claim which cannot be read.
const unreadable = "?"

// read never fails: one strange object must not keep a watch from all the others, nor get into a log.
func read(u *unstructured.Unstructured) (o object) {
	text, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err == nil {
		return o
	}
	o = object{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
		OwnerReferences: u.GetOwnerReferences(), DeletionTimestamp: u.GetDeletionTimestamp(),
	}}
	o.Status.Sandbox.Name = unreadable
	return o
}

// IsForbidden says whether an error of List or Watch means that the permission is missing.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

// customListWatch asks in the version that is served at the time, which may change while a watch goes on.
func (c *Client) customListWatch(gr schema.GroupResource, namespace string) (ListWatch, error) {
	config := rest.CopyConfig(c.watching)
	all, err := dynamic.NewForConfigAndClient(config, c.http)
	if err != nil {
		return ListWatch{}, fmt.Errorf("make Kubernetes client: %w", err)
	}
	in := func(version string) dynamic.ResourceInterface {
		return all.Resource(gr.WithVersion(version)).Namespace(namespace)
	}
	return ListWatch{
		Resource: gr.String(),
		Example:  &unstructured.Unstructured{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			version, err := c.versions.version(ctx, gr)
			switch {
			case err != nil:
				return nil, err
			case version == "":
				return none(), nil
			}
			list, err := in(version).List(ctx, o)
			return list, c.noticeMissing(err, gr, version)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			version, err := c.versions.version(ctx, gr)
			switch {
			case err != nil:
				return nil, err
			case version == "":
				return newSilence(ctx), nil
			}
			w, err := in(version).Watch(ctx, o)
			return w, c.noticeMissing(err, gr, version)
		},
	}, nil
}

func (c *Client) noticeMissing(err error, gr schema.GroupResource, version string) error {
	if noSuchPath(err) {
		c.versions.forget(gr, version)
	}
	return err
}

// none is the list of a resource that is not served. A watch from its version 0 begins with all that there is.
func none() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion("0")
	return list
}

// silenceFor is how long a resource that is not served is watched before it is looked for again.
const silenceFor = 5 * time.Second

// silence is the watch of a resource that is not served: nothing happens, until it ends.
type silence struct {
	events chan watch.Event
	cancel context.CancelFunc
}

func newSilence(ctx context.Context) *silence {
	ctx, cancel := context.WithTimeout(ctx, silenceFor)
	s := &silence{events: make(chan watch.Event), cancel: cancel}
	go func() {
		<-ctx.Done()
		close(s.events)
	}()
	return s
}

// Stop implements watch.Interface.
func (s *silence) Stop() { s.cancel() }

// ResultChan implements watch.Interface.
func (s *silence) ResultChan() <-chan watch.Event { return s.events }
