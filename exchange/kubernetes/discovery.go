package kubernetes

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sallyport/exchange/sandbox"
)

// The custom resources of agent-sandbox.
var (
	sandboxes = schema.GroupResource{Group: sandbox.GroupAgents, Resource: "sandboxes"}
	claims    = schema.GroupResource{Group: sandbox.GroupExtensions, Resource: "sandboxclaims"}
)

// discovery finds out in which version the cluster serves a resource. Found versions are kept until a call says that one
// is gone. That a resource is not served at all is not kept: a claim must count from the moment that there can be one.
type discovery struct {
	client *Client

	mu    sync.Mutex
	found map[schema.GroupResource]string
}

// version returns the version, or an empty one if the resource is not served.
func (d *discovery) version(ctx context.Context, gr schema.GroupResource) (string, error) {
	d.mu.Lock()
	version := d.found[gr]
	d.mu.Unlock()
	if version != "" {
		return version, nil
	}
	version, err := d.ask(ctx, gr)
	if err != nil || version == "" {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found == nil {
		d.found = map[schema.GroupResource]string{}
	}
	d.found[gr] = version
	return version, nil
}

// forget drops a version that a call did not find, unless another one was found meanwhile.
func (d *discovery) forget(gr schema.GroupResource, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found[gr] == version {
		delete(d.found, gr)
	}
}

// ask asks the API server: for the group's versions, and then whether the resource is in the preferred one, or in another.
// A group has versions that only some of its resources have.
func (d *discovery) ask(ctx context.Context, gr schema.GroupResource) (string, error) {
	root := "/apis/" + gr.Group
	var group metav1.APIGroup
	switch err := d.client.get(ctx, root, plainJSON, &group); {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", call{verb: "get", resource: root}.failure(err)
	}
	versions := append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...)
	for i, v := range versions {
		if i > 0 && v.Version == group.PreferredVersion.Version {
			continue
		}
		var list metav1.APIResourceList
		path := root + "/" + v.Version
		switch err := d.client.get(ctx, path, plainJSON, &list); {
		case apierrors.IsNotFound(err):
			continue // gone since
		case err != nil:
			return "", call{verb: "get", resource: path}.failure(err)
		}
		for _, r := range list.APIResources {
			if r.Name == gr.Resource {
				return v.Version, nil
			}
		}
	}
	return "", nil
}
