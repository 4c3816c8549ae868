package kubernetes_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"sallyport/exchange"
	"sallyport/exchange/httpapi"
	"sallyport/exchange/kubernetes"
	"sallyport/exchange/kubernetes/kubetest"
	"sallyport/gateway"
	"sallyport/internal/key"
)

// letExchangeAskForAdmins applies deploy/rbac-admins.yaml until the test ends. Its last role is the example of one.
func letExchangeAskForAdmins(t *testing.T, cluster *kubetest.Cluster) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/rbac-admins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rbac, ctx := cluster.Admin.RbacV1(), context.Background()
	for _, document := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		var binding rbacv1.ClusterRoleBinding
		var undo func() error
		if yaml.UnmarshalStrict([]byte(document), &role) == nil && role.Kind == "ClusterRole" {
			_, err = rbac.ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
			undo = func() error { return rbac.ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{}) }
		} else if err = yaml.UnmarshalStrict([]byte(document), &binding); err == nil {
			_, err = rbac.ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{})
			undo = func() error { return rbac.ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}) }
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := undo(); err != nil {
				t.Error(err)
			}
		})
	}
}

// grant gives a service account of the namespace a cluster role until the test ends; made for it if it has verbs.
func (r *rig) grant(account, role string, verbs ...string) {
	r.t.Helper()
	rbac, ctx := r.cluster.Admin.RbacV1(), context.Background()
	if len(verbs) > 0 {
		_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"sallyport.dev"}, Resources: []string{"keys"}, Verbs: verbs}},
		}, metav1.CreateOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = rbac.ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{}) })
	}
	name := r.Name + "-" + account
	_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: r.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}) })
}

func TestTheClustersRBACSaysWhoMayManageKeys(t *testing.T) {
	r := newRig(t, defaults())
	letExchangeAskForAdmins(t, r.cluster)
	for _, account := range []string{"admin", "reader", "one", "nobody"} {
		r.ServiceAccount(account, nil)
	}
	r.grant("admin", "sallyport-key-admin")
	r.grant("reader", r.Name+"-reads-keys", "list")
	r.grant("one", r.Name+"-revokes-one-by-one", "delete")
	admins := kubernetes.NewAdmins(r.client, time.Now)
	who := func(account string) string { return "system:serviceaccount:" + r.Name + ":" + account }
	pods := r.Token(r.Pod("agent", "admin"), audience)

	for name, c := range map[string]struct {
		token  string
		verb   exchange.Verb
		user   string // empty: refused
		status int
	}{
		"an admin lists":                        {r.TokenFor("admin", nil), exchange.VerbList, who("admin"), 0},
		"an admin creates":                      {r.TokenFor("admin", nil), exchange.VerbCreate, who("admin"), 0},
		"an admin revokes":                      {r.TokenFor("admin", nil), exchange.VerbDelete, who("admin"), 0},
		"an admin revokes many":                 {r.TokenFor("admin", nil), exchange.VerbDeleteMany, who("admin"), 0},
		"who may revoke one revokes one":        {r.TokenFor("one", nil), exchange.VerbDelete, who("one"), 0},
		"who may revoke one revokes many":       {r.TokenFor("one", nil), exchange.VerbDeleteMany, "", http.StatusForbidden},
		"a reader lists":                        {r.TokenFor("reader", nil), exchange.VerbList, who("reader"), 0},
		"a reader revokes":                      {r.TokenFor("reader", nil), exchange.VerbDelete, "", http.StatusForbidden},
		"nobody lists":                          {r.TokenFor("nobody", nil), exchange.VerbList, "", http.StatusForbidden},
		"an admin's pod's token for the memory": {pods, exchange.VerbList, "", http.StatusUnauthorized},
		"garbage":                               {"garbage", exchange.VerbList, "", http.StatusUnauthorized},
		"a forged token":                        {r.cluster.Forge(t, r.TokenFor("admin", nil), func(jwt.MapClaims) {}), exchange.VerbList, "", http.StatusUnauthorized},
	} {
		// A binding takes a moment to reach the authorizer.
		var user string
		var err error
		r.eventually(name, func() bool {
			user, err = admins.Authorize(t.Context(), c.token, c.verb)
			return (err == nil) == (c.user != "")
		})
		if user != c.user || (err != nil && gateway.AsError(err).Status != c.status) {
			t.Errorf("%s: %q, %v", name, user, err)
		}
	}
}

func TestWithoutThePermissionToAskItSaysSo(t *testing.T) {
	r := newRig(t, defaults())
	r.ServiceAccount("admin", nil)
	_, err := kubernetes.NewAdmins(r.client, time.Now).Authorize(t.Context(), r.TokenFor("admin", nil), exchange.VerbList)
	var e *gateway.Error
	if !errors.As(err, &e) || e.Status != http.StatusServiceUnavailable || e.Code != gateway.CodeNotPermitted || !strings.Contains(e.Message, "subjectaccessreviews") {
		t.Errorf("%v", err)
	}
}

func TestAUserOfTheClusterRevokesAKey(t *testing.T) {
	r := newRig(t, defaults())
	letExchangeAskForAdmins(t, r.cluster)
	r.ServiceAccount("admin", nil)
	r.grant("admin", "sallyport-key-admin")
	chain := r.Cold("run-1")
	minted := r.gets(r.exchange(r.Token(chain.Pod, audience)), "run-1")

	logger := slog.New(slog.NewJSONHandler(r.log, nil))
	x := exchange.New(exchange.Options{
		Authenticator: nobody{}, Store: r.store, Verifier: noKeys{}, Now: time.Now, Log: logger, Admins: kubernetes.NewAdmins(r.client, time.Now),
	})
	handler := httpapi.New(x, r.store.Ping, logger)
	token := r.TokenFor("admin", nil)
	send := func(method, path string) int {
		request := httptest.NewRequest(method, path, nil)
		request.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		return w.Code
	}
	r.eventually("the binding counts", func() bool { return send(http.MethodGet, "/v1/keys") == http.StatusOK })
	if status := send(http.MethodDelete, "/v1/keys/"+minted.body.ID); status != http.StatusNoContent {
		t.Fatalf("revoke: %d", status)
	}
	record, err := r.store.Key(t.Context(), minted.body.ID)
	if err != nil || !record.Revoked() || !strings.Contains(record.RevokedFor, "system:serviceaccount:"+r.Name+":admin") {
		t.Errorf("%+v, %v", record, err)
	}
	if strings.Contains(r.log.String(), token[:20]) {
		t.Error("the token is in the log")
	}
}

// nobody and noKeys are the parts of an exchange that managing keys by a user's token does not touch.
type nobody struct{}

func (nobody) Authenticate(context.Context, string) (exchange.Identity, error) {
	return exchange.Identity{}, errors.New("not asked for")
}

type noKeys struct{}

func (noKeys) Verify(context.Context, string) (key.Claims, error) {
	return key.Claims{}, &key.InvalidError{Reason: key.ReasonBadSignature}
}
