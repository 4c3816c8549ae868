package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sallyport/exchange/sandbox"
)

// Cluster reads objects from the API server, one call each. It implements sandbox.Cluster.
type Cluster struct{ Client *Client }

// metadataOnly asks for an object's metadata alone.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// Pod implements sandbox.Cluster.
func (c Cluster) Pod(ctx context.Context, namespace, name string) (sandbox.Pod, error) {
	var o pod // in full, since the phase is in the status: the rest is not looked at
	err := c.core(ctx, "pods", namespace, name, plainJSON, &o)
	return o.pod(), err
}

// ServiceAccount implements sandbox.Cluster.
func (c Cluster) ServiceAccount(ctx context.Context, namespace, name string) (sandbox.ServiceAccount, error) {
	var o object
	err := c.core(ctx, "serviceaccounts", namespace, name, metadataOnly, &o)
	return sandbox.ServiceAccount{Meta: o.meta()}, err
}

// Sandbox implements sandbox.Cluster.
func (c Cluster) Sandbox(ctx context.Context, namespace, name string) (sandbox.Sandbox, error) {
	o, err := c.custom(ctx, sandboxes, namespace, name)
	return o.sandbox(), err
}

// Claim implements sandbox.Cluster.
func (c Cluster) Claim(ctx context.Context, namespace, name string) (sandbox.Claim, error) {
	o, err := c.custom(ctx, claims, namespace, name)
	return o.claim(), err
}

func (c Cluster) core(ctx context.Context, resource, namespace, name, accept string, into any) error {
	if !segments(namespace, name) {
		return sandbox.ErrNotFound
	}
	err := c.Client.get(ctx, strings.Join([]string{"/api/v1/namespaces", namespace, resource, name}, "/"), accept, into)
	return outcome(err, call{"get", resource, namespace})
}

// custom reads a custom resource in the version that is served, and asks anew which one is when the one known is gone.
func (c Cluster) custom(ctx context.Context, gr schema.GroupResource, namespace, name string) (o object, err error) {
	if !segments(namespace, name) {
		return o, sandbox.ErrNotFound
	}
	const tries = 2
	for range tries {
		version, err := c.Client.versions.version(ctx, gr)
		switch {
		case err != nil:
			return o, err
		case version == "":
			return o, sandbox.ErrNotFound // where the resource is not served, there is no object of it
		}
		err = c.Client.get(ctx, strings.Join([]string{"/apis", gr.Group, version, "namespaces", namespace, gr.Resource, name}, "/"), plainJSON, &o)
		if !noSuchPath(err) {
			return o, outcome(err, call{"get", gr.String(), namespace})
		}
		c.Client.versions.forget(gr, version)
	}
	return o, fmt.Errorf("get %s: the API server says that it serves a version, and does not", gr)
}

func outcome(err error, c call) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return sandbox.ErrNotFound
	}
	return c.failure(err)
}

// segments says whether names may be part of a path. Names in owner references are not checked by Kubernetes: one such as
// "../../other/sandboxes/x" would lead to another namespace.
func segments(names ...string) bool {
	for _, name := range names {
		if name == "" || len(content.IsPathSegmentName(name)) > 0 {
			return false
		}
	}
	return true
}

var errNoAnswer = errors.New("no answer from the API server in time")
