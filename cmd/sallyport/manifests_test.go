package main_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"sallyport/exchange/kubernetes/kubetest"
)

// resources of the kinds that the manifests hold.
var resources = map[string]string{
	"ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles",
	"RoleBinding": "rolebindings", "StatefulSet": "statefulsets", "Service": "services", "NetworkPolicy": "networkpolicies", "Pod": "pods",
}

func TestARealClusterTakesTheManifests(t *testing.T) {
	cluster := kubetest.Shared(t)
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents"}} // sallyport is there
	if _, err := cluster.Admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // whose controller is not here
	if _, err := cluster.Admin.CoreV1().ServiceAccounts("agents").Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../deploy/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		for _, object := range objects(t, file) {
			group := object.GroupVersionKind()
			resource, ok := resources[group.Kind]
			if !ok {
				t.Errorf("%s: the test does not know %s", file, group.Kind)
				continue
			}
			client := cluster.Dynamic.Resource(schema.GroupVersionResource{Group: group.Group, Version: group.Version, Resource: resource})
			// A dry run goes through validation and admission; strict: a field that there is not is an error.
			how := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
			if object.GetNamespace() != "" {
				_, err = client.Namespace(object.GetNamespace()).Create(ctx, object, how)
			} else {
				_, err = client.Create(ctx, object, how)
			}
			if err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s: %s %s: %v", file, group.Kind, object.GetName(), err)
			}
		}
	}
}

func objects(t *testing.T, file string) (out []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)); ; {
		object := &unstructured.Unstructured{}
		err := d.Decode(object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, object)
	}
}
