package kubetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// The exchange's service account in deploy/rbac.yaml.
const (
	exchangeNamespace = "sallyport"
	exchangeAccount   = "sallyport-exchange"
)

// manifests are the objects of deploy/rbac.yaml.
type manifests struct {
	account     corev1.ServiceAccount
	clusterRole rbacv1.ClusterRole
	clusterBind rbacv1.ClusterRoleBinding
	role        rbacv1.Role
	roleBinding rbacv1.RoleBinding
}

// readManifests fails on anything that it does not know: what a test does not apply, it does not test.
func readManifests() (m manifests, err error) {
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "..", "deploy", "rbac.yaml"))
	if err != nil {
		return m, fmt.Errorf("read RBAC manifests: %w", err)
	}
	into := map[string]any{
		"ServiceAccount": &m.account, "ClusterRole": &m.clusterRole, "ClusterRoleBinding": &m.clusterBind, "Role": &m.role, "RoleBinding": &m.roleBinding,
	}
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	buffer := make([]byte, len(text))
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, fmt.Errorf("read RBAC manifests: %w", err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(buffer[:n], &kind); err != nil {
			return m, fmt.Errorf("read RBAC manifests: %w", err)
		}
		object := into[kind.Kind]
		if object == nil {
			return m, fmt.Errorf("RBAC manifests: %q is unknown, or is there twice", kind.Kind)
		}
		delete(into, kind.Kind)
		if err := yaml.UnmarshalStrict(buffer[:n], object); err != nil {
			return m, fmt.Errorf("read RBAC manifests: %s: %w", kind.Kind, err)
		}
	}
	if len(into) != 0 {
		return m, fmt.Errorf("RBAC manifests: some are missing: %v", into)
	}
	return m, nil
}

// installRBAC applies the part of deploy/rbac.yaml that is for the whole cluster.
func (c *Cluster) installRBAC(ctx context.Context) error {
	m, err := readManifests()
	if err != nil {
		return err
	}
	create := metav1.CreateOptions{}
	_, err1 := c.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exchangeNamespace}}, create)
	_, err2 := c.Admin.CoreV1().ServiceAccounts(m.account.Namespace).Create(ctx, &m.account, create)
	_, err3 := c.Admin.CoreV1().ServiceAccounts(exchangeNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}, create)
	_, err4 := c.Admin.RbacV1().ClusterRoles().Create(ctx, &m.clusterRole, create)
	_, err5 := c.Admin.RbacV1().ClusterRoleBindings().Create(ctx, &m.clusterBind, create)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return fmt.Errorf("apply RBAC manifests: %w", err)
	}
	return nil
}

// Without leaves out the verbs of a resource from what Allow gives.
type Without struct {
	Resource string
	Verbs    []string
}

// Allow gives the exchange the permissions in this namespace that deploy/rbac.yaml gives it in one namespace, but for those
// left out.
func (n *Namespace) Allow(leaveOut ...Without) {
	n.t.Helper()
	m, err := readManifests()
	if err != nil {
		n.t.Fatal(err)
	}
	m.role.Namespace, m.roleBinding.Namespace = n.Name, n.Name
	for _, out := range leaveOut {
		m.role.Rules = without(m.role.Rules, out)
	}
	n.Call("apply RBAC manifests", func(ctx context.Context) error {
		_, err1 := n.c.Admin.RbacV1().Roles(n.Name).Create(ctx, &m.role, metav1.CreateOptions{})
		_, err2 := n.c.Admin.RbacV1().RoleBindings(n.Name).Create(ctx, &m.roleBinding, metav1.CreateOptions{})
		return errors.Join(err1, err2)
	})
}

// AllowMore gives the exchange in this namespace all that deploy/rbac.yaml does, after an Allow that left something out.
func (n *Namespace) AllowMore() {
	n.t.Helper()
	m, err := readManifests()
	if err != nil {
		n.t.Fatal(err)
	}
	m.role.Namespace = n.Name
	n.Call("apply RBAC manifests", func(ctx context.Context) error {
		_, err := n.c.Admin.RbacV1().Roles(n.Name).Update(ctx, &m.role, metav1.UpdateOptions{})
		return err
	})
}

func without(rules []rbacv1.PolicyRule, out Without) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for _, rule := range rules {
		if rule.Resources[0] == out.Resource {
			var verbs []string
			for _, v := range rule.Verbs {
				if !slices.Contains(out.Verbs, v) {
					verbs = append(verbs, v)
				}
			}
			rule.Verbs = verbs
		}
		if len(rule.Verbs) > 0 {
			kept = append(kept, rule)
		}
	}
	return kept
}

// ExchangeConfig is how the exchange reaches the cluster: with its service account's token, and so with the permissions of
// deploy/rbac.yaml. The user agent tells its calls from those of other tests.
func (c *Cluster) ExchangeConfig(t testing.TB, userAgent string) *rest.Config {
	t.Helper()
	return c.configFor(t, exchangeAccount, userAgent)
}

// NobodyConfig reaches the cluster as a service account without permissions.
func (c *Cluster) NobodyConfig(t testing.TB, userAgent string) *rest.Config {
	t.Helper()
	return c.configFor(t, "nobody", userAgent)
}

func (c *Cluster) configFor(t testing.TB, account, userAgent string) *rest.Config {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	r, err := c.Admin.CoreV1().ServiceAccounts(exchangeNamespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("request token of %s: %v", account, err)
	}
	return &rest.Config{Host: c.config.Host, BearerToken: r.Status.Token, UserAgent: userAgent, TLSClientConfig: rest.TLSClientConfig{CAData: c.creds.CAPEM}}
}
