package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sallyport/exchange/kubernetes/kubetest"
	"sallyport/internal/keystore"
)

func TestTheSameHoldsWithWatches(t *testing.T) {
	watching = true
	defer func() { watching = false }()
	for name, test := range map[string]func(*testing.T){
		"claimed":     TestAPodOfAClaimedSandboxReachesTheClaimsMemory,
		"warm":        TestAWarmPodGetsAKeyWhenAClaimTakesIt,
		"signs":       TestEitherSignOfAWarmPoolIsEnough,
		"plain":       TestAPodWithoutAClaimIsItsOwnAgent,
		"links":       TestALinkThatDoesNotHoldIsNotFollowed,
		"remembered":  TestATokenOfAPodThatIsGoneIsRefusedEvenIfTheAPIServerRemembersIt,
		"terminating": TestATerminatingChainGetsNoKey,
		"finished":    TestAPodThatHasFinishedGetsNoKey,
		"tenant":      TestTheTenantMayComeFromALabelOfTheServiceAccount,
		"agent":       TestTheAgentMayComeFromALabelOfAPodWithoutAClaim,
		"regime":      TestTheAnswerSaysInWhichRegimeTheSandboxRuns,
		"versions":    TestTheServedVersionIsDiscoveredAndFollowed,
		"renewal":     TestRenewal,
	} {
		t.Run(name, test)
	}
}

func watched() setup {
	s := defaults()
	s.watch = true
	return s
}

// revoked waits until a key is revoked and returns the reason.
func (r *rig) revoked(id string) string {
	r.t.Helper()
	var record keystore.Record
	r.eventually("the key is revoked", func() bool {
		var err error
		if record, err = r.store.Key(context.Background(), id); err != nil {
			r.t.Fatal(err)
		}
		return record.Revoked()
	})
	return record.RevokedFor
}

// lives checks that a key is not revoked once the watch has heard of all that the test did.
func (r *rig) lives(id string) {
	r.t.Helper()
	r.catchUp()
	record, err := r.store.Key(context.Background(), id)
	if err != nil || record.Revoked() {
		r.t.Errorf("revoked for %q, %v", record.RevokedFor, err)
	}
}

func TestAKeyEndsWithItsPodAndWithWhatHoldsIt(t *testing.T) {
	claimed := func(r *rig) kubetest.Chain { return r.Cold("run-1") }
	label := "example.com/agent"
	for what, c := range map[string]struct {
		begin  func(r *rig) kubetest.Chain
		end    func(r *rig, c kubetest.Chain)
		reason string
	}{
		"pod deleted":     {claimed, func(r *rig, c kubetest.Chain) { r.DeletePod(c.Pod.Name, 0) }, "its pod was deleted"},
		"pod succeeded":   {claimed, func(r *rig, c kubetest.Chain) { r.Finish(c.Pod.Name, corev1.PodSucceeded) }, "has finished"},
		"pod failed":      {claimed, func(r *rig, c kubetest.Chain) { r.Finish(c.Pod.Name, corev1.PodFailed) }, "has finished"},
		"claim deleted":   {claimed, func(r *rig, c kubetest.Chain) { r.Delete(c.Claim) }, "its claim was deleted"},
		"Sandbox deleted": {claimed, func(r *rig, c kubetest.Chain) { r.Delete(c.Sandbox) }, "its pod's Sandbox was deleted"},
		"pod made again": {claimed, func(r *rig, c kubetest.Chain) {
			r.DeletePod(c.Pod.Name, 0)
			r.Pod(c.Pod.Name, "default", c.Sandbox.Owner())
		}, "its pod was deleted"},
		"claim made again": {claimed, func(r *rig, c kubetest.Chain) {
			r.Delete(c.Claim)
			r.Make("SandboxClaim", "run-1")
		}, "its claim was deleted"},
		"all deleted, the claim first": {claimed, func(r *rig, c kubetest.Chain) {
			r.Delete(c.Claim)
			r.Delete(c.Sandbox)
			r.DeletePod(c.Pod.Name, 0)
		}, "deleted"},
		"a claim takes the name of a plain pod": {
			func(r *rig) kubetest.Chain { return kubetest.Chain{Pod: r.Pod("run-1", "default")} },
			func(r *rig, c kubetest.Chain) { r.Make("SandboxClaim", "run-1") }, "a claim has the agent's name now",
		},
		"a claim takes the label of a plain pod": {
			func(r *rig) kubetest.Chain {
				return kubetest.Chain{Pod: r.MakePod(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "web-7f9c", Labels: map[string]string{label: "run-1"}}, Spec: corev1.PodSpec{ServiceAccountName: "default"},
				})}
			},
			func(r *rig, c kubetest.Chain) { r.Make("SandboxClaim", "run-1") }, "a claim has the agent's name now",
		},
		"a plain pod is labelled as another agent": {
			func(r *rig) kubetest.Chain { return kubetest.Chain{Pod: r.Pod("run-1", "default")} },
			func(r *rig, c kubetest.Chain) {
				r.ChangePod("run-1", func(p *corev1.Pod) { p.Labels = map[string]string{label: "other"} })
			}, `its pod is now the agent "other"`,
		},
		"the claim turns to another Sandbox": {
			claimed,
			func(r *rig, c kubetest.Chain) { r.SetSandbox(c.Claim, "other") }, "not_the_claims_sandbox",
		},
		"the pod outlives its grace": {
			func(r *rig) kubetest.Chain {
				return kubetest.Chain{Pod: r.MakePod(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "run-1"}, Spec: corev1.PodSpec{ServiceAccountName: "default", NodeName: "node-1"},
				})}
			},
			func(r *rig, c kubetest.Chain) { r.DeletePod("run-1", 2*time.Second) }, "its pod has outlived its grace period",
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := watched()
			s.options.AgentLabel = label
			r := newRig(t, s)
			chain := c.begin(r)
			bystander := r.gets(r.exchange(r.Token(r.Cold("bystander").Pod, audience)), "bystander")
			a := r.gets(r.exchange(r.Token(chain.Pod, audience)), "run-1")
			r.lives(a.body.ID)
			c.end(r, chain)
			if reason := r.revoked(a.body.ID); !strings.Contains(reason, c.reason) {
				t.Errorf("revoked for %q, want %q", reason, c.reason)
			}
			r.lives(bystander.body.ID)
		})
	}
}

func TestAKeyLivesThroughWhatDoesNotConcernIt(t *testing.T) {
	r := newRig(t, watched())
	c := r.Adopt(r.Warm("python", "python-abcde"), "run-1")
	a := r.gets(r.exchange(r.Token(c.Pod, audience)), "run-1")
	r.SetSandbox(c.Claim, c.Sandbox.Name)
	r.ChangePod(c.Pod.Name, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	r.Change(c.Claim, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
	r.Change(c.Sandbox, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/kept"}) })
	r.Pod("evil", "default", c.Sandbox.Owner())
	r.Cold("run-2")
	r.lives(a.body.ID)
}

func TestAnObjectThatCannotBeReadStopsNoWatch(t *testing.T) {
	r := newRig(t, watched())
	strange := r.Make("SandboxClaim", "strange", kubetest.Spec("not a list", "env"))
	r.Make("Sandbox", "strange", kubetest.OwnedBy(strange.Owner()), kubetest.Spec("not a list", "volumeClaimTemplates"))
	a := r.gets(r.exchange(r.Token(r.Cold("run-1").Pod, audience)), "run-1")
	r.DeletePod("run-1", 0)
	r.revoked(a.body.ID)
	if !r.watch.Warm(r.Name) || strings.Contains(r.log.String(), "not a list") {
		t.Errorf("warm: %t; the log: %s", r.watch.Warm(r.Name), r.log)
	}
}

func TestAPodsKeysLiveWhileItDrains(t *testing.T) {
	r := newRig(t, watched())
	pod := r.MakePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "run-1"}, Spec: corev1.PodSpec{ServiceAccountName: "default", NodeName: "node-1"}})
	a := r.gets(r.exchange(r.Token(pod, audience)), "run-1")
	r.DeletePod("run-1", time.Minute)
	r.lives(a.body.ID)
	r.DeletePod("run-1", 0) // the kubelet says that it has ended
	r.revoked(a.body.ID)
}

func TestWhatWasDeletedInAGapIsFound(t *testing.T) {
	cluster := kubetest.Shared(t)
	proxy := cluster.Proxy(t)
	s := watched()
	s.config = proxy.Config(cluster.ExchangeConfig(t, t.Name()))
	r := newRig(t, s)
	gone, again, claim := r.Cold("gone"), r.Cold("again"), r.Cold("claim")
	var ids []string
	for _, c := range []kubetest.Chain{gone, again, claim} {
		ids = append(ids, r.gets(r.exchange(r.Token(c.Pod, audience)), c.Claim.Name).body.ID)
	}
	proxy.Fault(func(*http.Request) http.HandlerFunc { return status(http.StatusServiceUnavailable) })
	proxy.Cut()
	r.eventually("the watch is broken", func() bool { return !r.watch.Warm(r.Name) })
	r.DeletePod("gone", 0)
	r.DeletePod("again", 0)
	r.Pod("again", "default", again.Sandbox.Owner())
	r.Delete(claim.Claim)
	proxy.Fault(nil)
	for _, id := range ids {
		r.revoked(id)
	}
}

func TestWhatWasDeletedBeforeAStartIsFound(t *testing.T) {
	r := newRig(t, watched())
	pod, kept := r.Cold("gone").Pod, r.Cold("kept").Pod
	gone := r.gets(r.exchange(r.Token(pod, audience)), "gone")
	stays := r.gets(r.exchange(r.Token(kept, audience)), "kept")
	r.stopWatch()
	r.DeletePod("gone", 0)
	r.watch, _ = r.startWatch(r.client, r.store, defaults().options, r.log)
	if reason := r.revoked(gone.body.ID); !strings.HasPrefix(reason, "its pod was deleted") {
		t.Errorf("revoked for %q", reason)
	}
	r.lives(stays.body.ID)
}

func TestAPodDeletedWhileItsKeyIsMintedLosesTheKey(t *testing.T) {
	r := newRig(t, watched())
	pod := r.Pod("run-1", "default")
	r.DeletePod("run-1", 0)
	r.catchUp()
	record := keystore.Record{
		ID: "late", Kind: keystore.Signed, Namespace: r.Name + ":run-1", Agent: "run-1", Session: "run-1", PodNamespace: r.Name, PodUID: string(pod.UID),
		ServiceAccount: "default", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}
	if err := r.store.AddKey(context.Background(), record); err != nil {
		t.Fatal(err)
	}
	r.watch.Minted(record)
	r.revoked("late")
}

func TestANamespaceIsWatchedOnceItHasAKey(t *testing.T) {
	r := newRig(t, watched())
	other := r.cluster.Namespace(t)
	other.Allow()
	pod := other.Pod("solo", "default")
	a := r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(other.Token(pod, audience)))
	if a.status != http.StatusCreated {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	r.eventually("the namespace is watched", func() bool { return r.watch.Warm(other.Name) })
	other.DeletePod("solo", 0)
	r.revoked(a.body.ID)
}

func TestTwoExchangesDoNotFight(t *testing.T) {
	r := newRig(t, watched())
	second := &log{}
	w, _ := r.startWatch(r.client, r.openStore(), defaults().options, second)
	r.eventually("both watch", func() bool { return w.Warm(r.Name) })
	const pods = 20
	var ids []string
	for i := range pods {
		name := fmt.Sprintf("run-%d", i)
		ids = append(ids, r.gets(r.exchange(r.Token(r.Cold(name).Pod, audience)), name).body.ID)
	}
	for i := range pods {
		r.DeletePod(fmt.Sprintf("run-%d", i), 0)
	}
	for _, id := range ids {
		r.revoked(id)
	}
	r.eventually("every revocation is in one log", func() bool {
		for _, id := range ids {
			line := `"msg":"key revoked","key_id":"` + id
			if strings.Count(r.log.String(), line)+strings.Count(second.String(), line) != 1 {
				return false
			}
		}
		return true
	})
}

func TestWithoutPermissionToWatchItSaysSoOnceAndGoesOn(t *testing.T) {
	s := watched()
	for _, resource := range []string{"pods", "sandboxes", "sandboxclaims"} {
		s.leave = append(s.leave, kubetest.Without{Resource: resource, Verbs: []string{"list", "watch"}})
	}
	r := newRig(t, s)
	c := r.Cold("run-1")
	a := r.gets(r.exchange(r.Token(c.Pod, audience)), "run-1")
	said := func() int { return strings.Count(r.log.String(), "watching is not permitted") }
	lists := func() (n int) {
		for _, call := range r.cluster.Calls(t, r.userAgent) {
			if call.Verb == "list" && call.Status.Code == http.StatusForbidden {
				n++
			}
		}
		return n
	}
	r.eventually("every watch was tried twice", func() bool { return lists() >= 6 })
	if said() != 1 {
		t.Errorf("said %d times, want once: %s", said(), r.log)
	}
	r.Delete(c.Claim)
	if record, err := r.store.Key(context.Background(), a.body.ID); err != nil || record.Revoked() {
		t.Errorf("%v %v", record, err)
	}
	r.refused(r.exchange(r.Token(c.Pod, audience)), http.StatusUnauthorized, "unauthenticated", "SandboxClaim that held the pod")

	r.AllowMore()
	r.eventually("the namespace is watched", func() bool { return r.watch.Warm(r.Name) })
	r.revoked(a.body.ID)
}

func TestAWatchFollowsTheServedVersion(t *testing.T) {
	r := newRig(t, watched())
	c := r.ColdIn("v1alpha1", "run-1")
	token := r.Token(c.Pod, audience)
	a := r.gets(r.exchange(token), "run-1")
	for _, kind := range []string{"Sandbox", "SandboxClaim"} {
		r.cluster.SetServed(t, kind, "v1beta1", false)
	}
	r.Delete(c.Claim)
	r.revoked(a.body.ID)
}

func TestAClusterWithoutAgentSandboxIsWatchedToo(t *testing.T) {
	for _, kind := range []string{"Sandbox", "SandboxClaim"} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			kubetest.Shared(t).SetServed(t, kind, version, false)
		}
	}
	r := newRig(t, watched())
	token := r.Token(r.Pod("solo", "default"), audience)
	a := r.gets(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token)), "solo")
	r.DeletePod("solo", 0)
	r.revoked(a.body.ID)
}

func TestAnExchangeIsOneCallWithWatches(t *testing.T) {
	r := newRig(t, watched())
	const exchanges = 20
	var tokens []string
	for i := range exchanges {
		tokens = append(tokens, r.Token(r.Cold(fmt.Sprintf("run-%d", i)).Pod, audience))
	}
	r.catchUp()
	before := len(r.cluster.Calls(t, r.userAgent))
	for i, token := range tokens {
		r.gets(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token)), fmt.Sprintf("run-%d", i))
	}
	n := len(r.cluster.Calls(t, r.userAgent)) - before
	t.Logf("%.2f calls an exchange", float64(n)/exchanges)
	if float64(n) > 1.2*exchanges {
		t.Errorf("%d calls for %d exchanges", n, exchanges)
	}
}

// From the deletion of a pod to the moment when another process on the same key store hears that its key is revoked.
func TestAKeyIsRevokedWithinTwoSecondsOfItsPodsEnd(t *testing.T) {
	r := newRig(t, watched())
	const pods = 50
	type chain struct{ name, id string }
	var chains []chain
	for i := range pods {
		name := fmt.Sprintf("run-%d", i)
		token := r.Token(r.Cold(name).Pod, audience)
		a := r.gets(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token)), name)
		chains = append(chains, chain{name, a.body.ID})
	}
	var mu sync.Mutex
	heard := map[string]time.Time{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan struct{})
	var wg sync.WaitGroup
	other := r.openStore()
	wg.Go(func() {
		_ = other.WatchRevocations(ctx, func(id string, _ time.Time) {
			mu.Lock()
			defer mu.Unlock()
			heard[id] = time.Now()
		}, sync.OnceFunc(func() { close(ready) })) // it ends with the test
	})
	defer wg.Wait()
	defer cancel()
	<-ready
	deleted := map[string]time.Time{}
	for _, c := range chains {
		deleted[c.id] = time.Now()
		r.DeletePod(c.name, 0)
	}
	r.eventually("all are heard of", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) == pods
	})
	var lags []time.Duration
	for id, at := range heard {
		lags = append(lags, at.Sub(deleted[id]))
	}
	slices.Sort(lags)
	t.Logf("from deletion to another process: p50 %s, worst %s", lags[pods/2], lags[pods-1])
	if lags[pods-1] > 2*time.Second {
		t.Errorf("the slowest took %s", lags[pods-1])
	}
}
