package kubernetes_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sallyport/exchange/kubernetes/kubetest"
	"sallyport/exchange/sandbox"
)

func TestAPodOfAClaimedSandboxReachesTheClaimsMemory(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, defaults())
			c := r.ColdIn(version, "run-1")
			a := r.gets(r.exchange(r.Token(c.Pod, audience)), "run-1")
			if a.body.Session != c.Pod.Name || a.body.Key == "" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %s with %v", a.text, a.header)
			}
			for _, member := range []string{`"admin":false`, `"revoked":false`, `"renewable":true`, `"ttl":"15m0s"`, `"note":`, `"created_at":`, `"id":`} {
				if !strings.Contains(a.text, member) {
					t.Errorf("the answer %s lacks %s", a.text, member)
				}
			}
		})
	}
}

func TestAWarmPodGetsAKeyWhenAClaimTakesIt(t *testing.T) {
	r := newRig(t, defaults())
	c := r.Warm("python", "python-x7k2p")
	token := r.Token(c.Pod, audience)
	r.refused(r.exchange(token), http.StatusUnauthorized, "unauthenticated", "still in warm pool")
	r.Adopt(c, "run-1")
	r.gets(r.exchange(token), "run-1") // the same token, at once: the claim's status does not name the Sandbox yet
}

func TestAPodThatHasFinishedGetsNoKey(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		t.Run(string(phase), func(t *testing.T) {
			r := newRig(t, defaults())
			c := r.Cold("run-1")
			token := r.Token(c.Pod, audience)
			r.gets(r.exchange(token), "run-1")
			r.Finish(c.Pod.Name, phase)
			r.refused(r.exchange(token), http.StatusUnauthorized, "unauthenticated", "has finished")
		})
	}
}

func TestEitherSignOfAWarmPoolIsEnough(t *testing.T) {
	r := newRig(t, defaults())
	pool := r.Make("SandboxWarmPool", "python")
	for name, sb := range map[string]kubetest.Object{
		"owner": r.Make("Sandbox", "owner", kubetest.OwnedBy(pool.Owner())),
		"label": r.Make("Sandbox", "label", kubetest.Labels(map[string]string{kubetest.WarmPoolLabel: "python"})),
	} {
		r.refused(r.exchange(r.Token(r.Pod(name, "default", sb.Owner()), audience)), http.StatusUnauthorized, "unauthenticated", "still in warm pool")
	}
}

// plain makes pods that no claim holds, each named name.
var plain = map[string]func(r *rig, name string) *corev1.Pod{
	"plain": func(r *rig, name string) *corev1.Pod { return r.Pod(name, "default") },
	"of a ReplicaSet": func(r *rig, name string) *corev1.Pod {
		yes := true
		return r.Pod(name, "default", metav1.OwnerReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: "web", UID: "1", Controller: &yes})
	},
	"of a Sandbox without a claim": func(r *rig, name string) *corev1.Pod {
		return r.Pod(name, "default", r.Make("Sandbox", name).Owner())
	},
	"whose owner Sandbox is no controller": func(r *rig, name string) *corev1.Pod {
		owner := r.Cold("other").Sandbox.Owner()
		owner.Controller = nil
		return r.Pod(name, "default", owner)
	},
	"of another group's Sandbox": func(r *rig, name string) *corev1.Pod {
		owner := r.Cold("other").Sandbox.Owner()
		owner.APIVersion = "agents.x-k8s.io.example.com/v1beta1"
		return r.Pod(name, "default", owner)
	},
	"of another kind of the group": func(r *rig, name string) *corev1.Pod {
		owner := r.Cold("other").Sandbox.Owner()
		owner.Kind = "SandboxBlueprint"
		return r.Pod(name, "default", owner)
	},
	"whose Sandbox's claim is no controller": func(r *rig, name string) *corev1.Pod {
		owner := r.Cold("other").Claim.Owner()
		owner.Controller = nil
		return r.Pod(name, "default", r.Make("Sandbox", name, kubetest.OwnedBy(owner)).Owner())
	},
	"whose Sandbox has another group's claim": func(r *rig, name string) *corev1.Pod {
		owner := r.Cold("other").Claim.Owner()
		owner.APIVersion = "agents.x-k8s.io/v1beta1"
		return r.Pod(name, "default", r.Make("Sandbox", name, kubetest.OwnedBy(owner)).Owner())
	},
}

func TestAPodWithoutAClaimIsItsOwnAgent(t *testing.T) {
	for what, pod := range plain {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, defaults())
			r.gets(r.exchange(r.Token(pod(r, "solo"), audience)), "solo")
		})
		t.Run(what+", with --require-claim", func(t *testing.T) {
			s := defaults()
			s.options.RequireClaim = true
			r := newRig(t, s)
			r.refused(r.exchange(r.Token(pod(r, "solo"), audience)), http.StatusUnauthorized, "unauthenticated", "no SandboxClaim")
		})
		t.Run(what+", with the name of a claim", func(t *testing.T) {
			r := newRig(t, defaults())
			r.Make("SandboxClaim", "solo")
			r.refused(r.exchange(r.Token(pod(r, "solo"), audience)), http.StatusUnauthorized, "unauthenticated", "the name of a SandboxClaim")
		})
	}
}

// leftover is a change after which the pod of run-1 must reach nobody's memory.
func TestALinkThatDoesNotHoldIsNotFollowed(t *testing.T) {
	again := func(r *rig, o kubetest.Object, molds ...kubetest.Mold) kubetest.Object {
		r.Delete(o)
		return r.Make(o.Kind, o.Name, molds...)
	}
	for what, c := range map[string]struct {
		change func(r *rig, c kubetest.Chain) *corev1.Pod // nil: the chain's own pod
		says   string
	}{
		"claim deleted":    {func(r *rig, c kubetest.Chain) *corev1.Pod { r.Delete(c.Claim); return nil }, "SandboxClaim that held the pod does not exist"},
		"claim made again": {func(r *rig, c kubetest.Chain) *corev1.Pod { again(r, c.Claim); return nil }, "leftover"},
		"Sandbox deleted":  {func(r *rig, c kubetest.Chain) *corev1.Pod { r.Delete(c.Sandbox); return nil }, "Sandbox does not exist"},
		"Sandbox made again for the claim": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			again(r, c.Sandbox, kubetest.OwnedBy(c.Claim.Owner()))
			return nil
		}, "leftover"},
		"pod names the Sandbox with a wrong UID": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			owner := c.Sandbox.Owner()
			owner.UID = "0b8f0b8e-0000-0000-0000-000000000000"
			return r.Pod("evil", "default", owner)
		}, "another one has its name"},
		"Sandbox names the claim with a wrong UID": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			owner := c.Claim.Owner()
			owner.UID = "0b8f0b8e-0000-0000-0000-000000000000"
			return r.Pod("evil", "default", r.Make("Sandbox", "evil", kubetest.OwnedBy(owner)).Owner())
		}, "another one has its name"},
		"second pod names somebody's Sandbox": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			return r.Pod("evil", "default", c.Sandbox.Owner())
		}, "names another pod as its own"},
		"second pod names a Sandbox that adopted another": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			r.Change(c.Sandbox, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{kubetest.PodNameAnnotation: "pool-abcde"})
			})
			return nil // of the Sandbox's name, which counts no longer
		}, "names another pod as its own"},
		"second Sandbox names somebody's claim": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			return r.Pod("evil", "default", r.Make("Sandbox", "evil", kubetest.OwnedBy(c.Claim.Owner())).Owner())
		}, "names another Sandbox as its own"},
		"second Sandbox names a claim whose status is not set, but its annotation": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			claim := r.Make("SandboxClaim", "run-2", kubetest.Annotations(map[string]string{sandbox.AnnotationSandboxName: "run-2"}))
			return r.Pod("evil", "default", r.Make("Sandbox", "evil", kubetest.OwnedBy(claim.Owner())).Owner())
		}, "names another Sandbox as its own"},
		"owner's name leads to another namespace": {func(r *rig, c kubetest.Chain) *corev1.Pod {
			owner := c.Sandbox.Owner()
			owner.Name = "../../" + r.Name + "/sandboxes/" + c.Sandbox.Name
			return r.Pod("run-1-x", "default", owner)
		}, "Sandbox does not exist"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, defaults())
			chain := r.Cold("run-1")
			pod := c.change(r, chain)
			if pod == nil {
				pod = chain.Pod
			}
			r.refused(r.exchange(r.Token(pod, audience)), http.StatusUnauthorized, "unauthenticated", c.says)
		})
	}
}

func TestATokenOfAPodThatIsGoneIsRefusedEvenIfTheAPIServerRemembersIt(t *testing.T) {
	for what, again := range map[string]bool{"deleted": false, "made again under its name": true} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, defaults())
			pod := r.Pod("solo", "default")
			token := r.Token(pod, audience)
			r.gets(r.exchange(token), "solo")
			r.DeletePod("solo", 0)
			if again {
				r.Pod("solo", "default")
			}
			r.refused(r.exchange(token), http.StatusUnauthorized, "unauthenticated")
		})
	}
}

func TestATerminatingChainGetsNoKey(t *testing.T) {
	const kept = "example.com/kept"
	const grace = 10 * time.Minute
	terminating := map[string]struct {
		begin func(r *rig) *corev1.Pod
		lasts time.Duration
	}{
		"pod": {func(r *rig) *corev1.Pod {
			claim := r.Make("SandboxClaim", "run-1")
			sb := r.Make("Sandbox", "run-1", kubetest.OwnedBy(claim.Owner()))
			pod := r.MakePod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "run-1", OwnerReferences: []metav1.OwnerReference{sb.Owner()}},
				Spec:       corev1.PodSpec{ServiceAccountName: "default", NodeName: "node-1"}, // without one it would go at once
			})
			r.DeletePod("run-1", grace)
			return pod
		}, grace},
		"Sandbox": {func(r *rig) *corev1.Pod {
			claim := r.Make("SandboxClaim", "run-1")
			sb := r.Make("Sandbox", "run-1", kubetest.OwnedBy(claim.Owner()), kubetest.Finalizer(kept))
			pod := r.Pod("run-1", "default", sb.Owner())
			r.Delete(sb)
			return pod
		}, 30 * time.Second},
		"claim": {func(r *rig) *corev1.Pod {
			c := r.Cold("run-1", kubetest.Finalizer(kept))
			r.Delete(c.Claim)
			return c.Pod
		}, 30 * time.Second},
	}
	for what, c := range terminating {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, defaults())
			r.refused(r.exchange(r.Token(c.begin(r), audience)), http.StatusUnauthorized, "unauthenticated", "being deleted")
		})
		t.Run(what+", with --allow-terminating a key that ends with the grace", func(t *testing.T) {
			s := defaults()
			s.options.AllowTerminating = true
			r := newRig(t, s)
			a := r.gets(r.exchange(r.Token(c.begin(r), audience)), "run-1")
			if left := time.Until(a.body.ExpiresAt); left > c.lasts || left < c.lasts-time.Minute/2 {
				t.Errorf("the key lives for %s, the grace is %s", left, c.lasts)
			}
		})
		t.Run(what+", with --allow-terminating, after the grace", func(t *testing.T) {
			s := defaults()
			s.options.AllowTerminating = true
			s.options.Now = func() time.Time { return time.Now().Add(c.lasts) }
			r := newRig(t, s)
			r.refused(r.exchange(r.Token(c.begin(r), audience)), http.StatusUnauthorized, "unauthenticated", "being deleted")
		})
	}
}

func TestATokenWithoutAPodIsRefusedAndSaysHowToGetOne(t *testing.T) {
	r := newRig(t, defaults())
	var secret *corev1.Secret
	r.Call("make secret", func(ctx context.Context) (err error) {
		secret, err = r.cluster.Admin.CoreV1().Secrets(r.Name).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
		return err
	})
	for what, bound := range map[string]*authenticationv1.BoundObjectReference{
		"unbound": nil,
		"secret":  {APIVersion: "v1", Kind: "Secret", Name: "s", UID: secret.UID},
	} {
		t.Run(what, func(t *testing.T) {
			r.refused(r.exchange(r.TokenFor("default", bound, audience)), http.StatusUnauthorized, "unauthenticated", "projected serviceAccountToken")
		})
	}
}

func TestANameTooLongForANamespaceIsNamed(t *testing.T) {
	r := newRig(t, defaults())
	name := strings.Repeat("a", 128)
	r.refused(r.exchange(r.Token(r.Pod(name, "default"), audience)), http.StatusUnprocessableEntity, "invalid_argument", name)
}

func TestTheTenantMayComeFromALabelOfTheServiceAccount(t *testing.T) {
	s := defaults()
	s.options.TenantLabel = "example.com/tenant"
	r := newRig(t, s)
	r.ServiceAccount("acme", map[string]string{"example.com/tenant": "acme"})
	a := r.exchange(r.Token(r.Pod("solo", "acme"), audience))
	if a.status != http.StatusCreated || a.body.Namespace != "acme:solo" {
		t.Errorf("got %d %s", a.status, a.text)
	}
	r.refused(r.exchange(r.Token(r.Pod("other", "default"), audience)), http.StatusUnauthorized, "unauthenticated", "has no tenant")
}

func TestTheAgentMayComeFromALabelOfAPodWithoutAClaim(t *testing.T) {
	s := defaults()
	s.options.AgentLabel = "example.com/agent"
	r := newRig(t, s)
	labelled := func(name, agent string) *corev1.Pod {
		return r.MakePod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"example.com/agent": agent}},
			Spec:       corev1.PodSpec{ServiceAccountName: "default"},
		})
	}
	r.gets(r.exchange(r.Token(labelled("web-7f9c", "web"), audience)), "web")
	r.gets(r.exchange(r.Token(r.Pod("bare", "default"), audience)), "bare")
	r.Make("SandboxClaim", "run-1")
	r.refused(r.exchange(r.Token(labelled("evil", "run-1"), audience)), http.StatusUnauthorized, "unauthenticated", "the name of a SandboxClaim")
}

func TestTheAnswerSaysInWhichRegimeTheSandboxRuns(t *testing.T) {
	pool := kubetest.Spec("python", "warmPoolRef", "name")
	volumes := kubetest.Spec([]any{map[string]any{"metadata": map[string]any{"name": "work"}}}, "volumeClaimTemplates")
	for what, c := range map[string]struct {
		pod  func(r *rig) *corev1.Pod
		want string
	}{
		"cold": {func(r *rig) *corev1.Pod { return r.Cold("run-1", pool).Pod }, `"sandbox":{"claim":"run-1","pool":"python","started":"cold","keeps":["memory"]}`},
		"warm": {func(r *rig) *corev1.Pod {
			c := r.Warm("python", "python-abcde")
			r.Adopt(c, "run-1", pool)
			return c.Pod
		}, `"sandbox":{"claim":"run-1","pool":"python","started":"warm","keeps":["memory"]}`},
		"with a disk": {func(r *rig) *corev1.Pod {
			claim := r.Make("SandboxClaim", "run-1", pool)
			return r.Pod("run-1", "default", r.Make("Sandbox", "run-1", kubetest.OwnedBy(claim.Owner()), volumes).Owner())
		}, `"sandbox":{"claim":"run-1","pool":"python","started":"cold","keeps":["memory","disk"]}`},
		"the controller's label is missing": {func(r *rig) *corev1.Pod {
			claim := r.Make("SandboxClaim", "run-1", pool)
			return r.Pod("python-abcde", "default", r.Make("Sandbox", "python-abcde", kubetest.OwnedBy(claim.Owner())).Owner())
		}, `"sandbox":{"claim":"run-1","pool":"python","started":"warm","keeps":["memory"]}`},
		"without a claim": {
			func(r *rig) *corev1.Pod { return r.Pod("run-1", "default", r.Make("Sandbox", "run-1").Owner()) },
			`"sandbox":{"started":"cold","keeps":["memory"]}`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, defaults())
			a := r.exchange(r.Token(c.pod(r), audience))
			if a.status != http.StatusCreated || !strings.Contains(a.text, c.want) {
				t.Errorf("got %d %s, want %s", a.status, a.text, c.want)
			}
		})
	}
	t.Run("of a plain pod nothing is known", func(t *testing.T) {
		r := newRig(t, defaults())
		if a := r.exchange(r.Token(r.Pod("solo", "default"), audience)); a.status != http.StatusCreated || strings.Contains(a.text, `"sandbox"`) {
			t.Errorf("got %d %s", a.status, a.text)
		}
	})
}
