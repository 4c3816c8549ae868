package kubetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The custom resources of agent-sandbox, by kind. Names, groups, versions and the status subresource are theirs; the
// schemas are ours and let everything pass.
var kinds = map[string]schema.GroupResource{
	"Sandbox":         {Group: "agents.x-k8s.io", Resource: "sandboxes"},
	"SandboxClaim":    {Group: "extensions.agents.x-k8s.io", Resource: "sandboxclaims"},
	"SandboxTemplate": {Group: "extensions.agents.x-k8s.io", Resource: "sandboxtemplates"},
	"SandboxWarmPool": {Group: "extensions.agents.x-k8s.io", Resource: "sandboxwarmpools"},
}

const (
	stored = "v1beta1" // the version that objects are stored in
	older  = "v1alpha1"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func resourceOf(kind, version string) schema.GroupVersionResource {
	return kinds[kind].WithVersion(version)
}

func (c *Cluster) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for kind := range kinds {
		if _, err := c.Dynamic.Resource(crds).Create(ctx, crd(kind), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create custom resource %s: %w", kind, err)
		}
	}
	for kind := range kinds {
		for _, version := range []string{stored, older} {
			if err := c.waitServed(ctx, kind, version, true); err != nil {
				return err
			}
		}
	}
	return c.installRBAC(ctx)
}

func crd(kind string) *unstructured.Unstructured {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	version := func(name string) map[string]any {
		return map[string]any{
			"name": name, "served": true, "storage": name == stored, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": anything, "status": anything},
			}},
		}
	}
	r := kinds[kind]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": r.String(), "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a test's own"},
		},
		"spec": map[string]any{
			"group": r.Group, "scope": "Namespaced",
			"names":    map[string]any{"kind": kind, "listKind": kind + "List", "plural": r.Resource, "singular": strings.ToLower(kind)},
			"versions": []any{version(stored), version(older)},
		},
	}}
}

// SetServed makes the API server serve a version of a kind, or no longer. Every test of the binary notices: do not call it
// from a parallel one. What is not served is served again when the test ends.
func (c *Cluster) SetServed(t *testing.T, kind, version string, served bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if !served {
		t.Cleanup(func() { c.SetServed(t, kind, version, true) })
	}
	if err := c.setServed(ctx, kind, version, served); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) setServed(ctx context.Context, kind, version string, served bool) error {
	all := c.Dynamic.Resource(crds)
	object, err := all.Get(ctx, kinds[kind].String(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get custom resource %s: %w", kind, err)
	}
	versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		return fmt.Errorf("read custom resource %s: %w", kind, err)
	}
	for _, v := range versions {
		if v := v.(map[string]any); v["name"] == version {
			v["served"] = served
		}
	}
	if err := unstructured.SetNestedSlice(object.Object, versions, "spec", "versions"); err != nil {
		return fmt.Errorf("change custom resource %s: %w", kind, err)
	}
	if _, err := all.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update custom resource %s: %w", kind, err)
	}
	return c.waitServed(ctx, kind, version, served)
}

// waitServed waits until the API server does, or no longer does, answer for a version of a kind: in discovery and by a list.
func (c *Cluster) waitServed(ctx context.Context, kind, version string, want bool) error {
	const every = 20 * time.Millisecond
	for {
		_, err := c.Dynamic.Resource(resourceOf(kind, version)).Namespace("default").List(ctx, metav1.ListOptions{Limit: 1})
		listed := false
		if found, err := c.Admin.Discovery().ServerResourcesForGroupVersion(resourceOf(kind, version).GroupVersion().String()); err == nil {
			for _, r := range found.APIResources {
				listed = listed || r.Name == kinds[kind].Resource
			}
		}
		if (err == nil) == want && listed == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %s: served=%t did not come about: %w", kind, version, want, err)
		case <-time.After(every):
		}
	}
}
