package sandbox_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"sallyport/exchange/sandbox"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a cluster with one namespace: pod run-1-pod, controlled by Sandbox run-1-sb, controlled by claim run-1. A case
// changes what it is about.
type world struct {
	subject   sandbox.Subject
	pods      map[string]sandbox.Pod
	sandboxes map[string]sandbox.Sandbox
	claims    map[string]sandbox.Claim
	accounts  map[string]sandbox.ServiceAccount
	broken    string // the kind that cannot be asked for
}

func newWorld() *world {
	return &world{
		subject: sandbox.Subject{Namespace: "agents", ServiceAccount: "default", PodName: "run-1-pod", PodUID: "p1"},
		pods: map[string]sandbox.Pod{"run-1-pod": {
			Meta: sandbox.Meta{
				Namespace: "agents", Name: "run-1-pod", UID: "p1",
				Owners: []sandbox.Owner{{Group: sandbox.GroupAgents, Kind: sandbox.KindSandbox, Name: "run-1-sb", UID: "s1", Controller: true}},
			},
			ServiceAccount: "default",
		}},
		sandboxes: map[string]sandbox.Sandbox{"run-1-sb": {Meta: sandbox.Meta{
			Namespace: "agents", Name: "run-1-sb", UID: "s1",
			Annotations: map[string]string{sandbox.AnnotationPodName: "run-1-pod"},
			Owners:      []sandbox.Owner{{Group: sandbox.GroupExtensions, Kind: sandbox.KindClaim, Name: "run-1", UID: "c1", Controller: true}},
		}}},
		claims: map[string]sandbox.Claim{"run-1": {
			Meta: sandbox.Meta{Namespace: "agents", Name: "run-1", UID: "c1"}, SandboxName: "run-1-sb", Pool: "pool",
		}},
		accounts: map[string]sandbox.ServiceAccount{"default": {Meta: sandbox.Meta{Namespace: "agents", Name: "default", UID: "a1"}}},
	}
}

func (w *world) pod(change func(*sandbox.Pod)) *world {
	p := w.pods["run-1-pod"]
	change(&p)
	w.pods["run-1-pod"] = p
	return w
}

func (w *world) sandbox(change func(*sandbox.Sandbox)) *world {
	s := w.sandboxes["run-1-sb"]
	change(&s)
	w.sandboxes["run-1-sb"] = s
	return w
}

func (w *world) claim(change func(*sandbox.Claim)) *world {
	c := w.claims["run-1"]
	change(&c)
	w.claims["run-1"] = c
	return w
}

var errBroken = errors.New("cannot be asked")

func find[T any](w *world, kind string, in map[string]T, namespace, name string) (T, error) {
	object, ok := in[name]
	switch {
	case w.broken == kind:
		return object, errBroken
	case !ok || namespace != "agents":
		return object, sandbox.ErrNotFound
	}
	return object, nil
}

func (w *world) Pod(_ context.Context, namespace, name string) (sandbox.Pod, error) {
	return find(w, "pod", w.pods, namespace, name)
}

func (w *world) Sandbox(_ context.Context, namespace, name string) (sandbox.Sandbox, error) {
	return find(w, "sandbox", w.sandboxes, namespace, name)
}

func (w *world) Claim(_ context.Context, namespace, name string) (sandbox.Claim, error) {
	return find(w, "claim", w.claims, namespace, name)
}

func (w *world) ServiceAccount(_ context.Context, namespace, name string) (sandbox.ServiceAccount, error) {
	return find(w, "account", w.accounts, namespace, name)
}

func (w *world) resolve(opts sandbox.Options) (sandbox.Agent, error) {
	opts.Now = func() time.Time { return now }
	return sandbox.Resolve(context.Background(), w, w.subject, opts)
}

func TestAClaimedPodReachesItsClaimsMemory(t *testing.T) {
	got, err := newWorld().resolve(sandbox.Options{})
	want := sandbox.Agent{
		Tenant: "agents", Name: "run-1", Claim: "run-1", Sandbox: "run-1-sb",
		Regime: sandbox.Regime{Claim: "run-1", Pool: "pool", Started: sandbox.Warm, Keeps: []string{sandbox.Memory}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOneBrokenLinkIsEnough(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		opts   sandbox.Options
		want   sandbox.Refusal
	}{
		"a token without a pod's name": {func(w *world) { w.subject.PodName = "" }, sandbox.Options{}, sandbox.NotBoundToPod},
		"a token without a pod's UID":  {func(w *world) { w.subject.PodUID = "" }, sandbox.Options{}, sandbox.NotBoundToPod},
		"the pod is gone":              {func(w *world) { delete(w.pods, "run-1-pod") }, sandbox.Options{}, sandbox.PodGone},
		"the pod was made again":       {func(w *world) { w.subject.PodUID = "p0" }, sandbox.Options{}, sandbox.PodReplaced},
		"the pod is terminating":       {func(w *world) { w.pod(func(p *sandbox.Pod) { p.EndsAt = now.Add(time.Minute) }) }, sandbox.Options{}, sandbox.PodTerminating},
		"the pod has finished":         {func(w *world) { w.pod(func(p *sandbox.Pod) { p.Finished = true }) }, sandbox.Options{AllowTerminating: true}, sandbox.PodFinished},
		"the pod is past its grace":    {func(w *world) { w.pod(func(p *sandbox.Pod) { p.EndsAt = now }) }, sandbox.Options{AllowTerminating: true}, sandbox.PodTerminating},
		"the pod is another account's": {func(w *world) { w.subject.ServiceAccount = "other" }, sandbox.Options{}, sandbox.OtherServiceAccount},
		"the Sandbox is gone":          {func(w *world) { delete(w.sandboxes, "run-1-sb") }, sandbox.Options{}, sandbox.SandboxGone},
		"the Sandbox was made again":   {func(w *world) { w.sandbox(func(s *sandbox.Sandbox) { s.UID = "s2" }) }, sandbox.Options{}, sandbox.SandboxReplaced},
		"the Sandbox is terminating":   {func(w *world) { w.sandbox(func(s *sandbox.Sandbox) { s.EndsAt = now }) }, sandbox.Options{}, sandbox.SandboxTerminating},
		"the Sandbox has another pod": {func(w *world) {
			w.sandbox(func(s *sandbox.Sandbox) { s.Annotations[sandbox.AnnotationPodName] = "other" })
		}, sandbox.Options{}, sandbox.NotTheSandboxesPod},
		"the Sandbox names no pod": {func(w *world) { w.sandbox(func(s *sandbox.Sandbox) { s.Annotations = nil }) }, sandbox.Options{}, sandbox.NotTheSandboxesPod}, // then the pod has its name
		"the Sandbox is a pool's":  {func(w *world) { w.sandbox(func(s *sandbox.Sandbox) { s.Owners[0].Kind = sandbox.KindWarmPool }) }, sandbox.Options{}, sandbox.InWarmPool},
		"its pool is gone, it is not": {func(w *world) {
			w.sandbox(func(s *sandbox.Sandbox) { s.Owners, s.Labels = nil, map[string]string{sandbox.LabelWarmPool: "x"} })
		}, sandbox.Options{}, sandbox.InWarmPool},
		"the claim is gone":             {func(w *world) { delete(w.claims, "run-1") }, sandbox.Options{}, sandbox.ClaimGone},
		"the claim was made again":      {func(w *world) { w.claim(func(c *sandbox.Claim) { c.UID = "c2" }) }, sandbox.Options{}, sandbox.ClaimReplaced},
		"the claim is terminating":      {func(w *world) { w.claim(func(c *sandbox.Claim) { c.EndsAt = now }) }, sandbox.Options{}, sandbox.ClaimTerminating},
		"the claim has another Sandbox": {func(w *world) { w.claim(func(c *sandbox.Claim) { c.SandboxName = "other" }) }, sandbox.Options{}, sandbox.NotTheClaimsSandbox},
		"no claim where one is needed":  {func(w *world) { w.pod(func(p *sandbox.Pod) { p.Owners = nil }) }, sandbox.Options{RequireClaim: true}, sandbox.NoClaim},
		"a plain pod named as a claim": {func(w *world) {
			w.pod(func(p *sandbox.Pod) { p.Owners = nil })
			w.claims["run-1-pod"] = sandbox.Claim{}
		}, sandbox.Options{}, sandbox.NameOfAClaim},
		"a plain pod labelled as a claim": {func(w *world) {
			w.pod(func(p *sandbox.Pod) { p.Owners, p.Labels = nil, map[string]string{"agent": "run-1"} })
		}, sandbox.Options{AgentLabel: "agent"}, sandbox.NameOfAClaim},
		"the account has no tenant":  {func(*world) {}, sandbox.Options{TenantLabel: "tenant"}, sandbox.NoTenant},
		"the account is gone":        {func(w *world) { delete(w.accounts, "default") }, sandbox.Options{TenantLabel: "tenant"}, sandbox.AccountGone},
		"the account was made again": {func(w *world) { w.subject.ServiceAccountUID = "a0" }, sandbox.Options{TenantLabel: "tenant"}, sandbox.AccountReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.change(w)
			agent, err := w.resolve(c.opts)
			var refused *sandbox.RefusedError
			if !errors.As(err, &refused) || refused.Refusal != c.want {
				t.Errorf("got %+v, %v; want %s", agent, err, c.want)
			}
			if err != nil && err.Error() == "" {
				t.Error("there is no sentence for it")
			}
		})
	}
}

func TestWhatIsNoControllerOfOursIsNotFollowed(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Owner){
		"an owner that is no controller":         func(o *sandbox.Owner) { o.Controller = false },
		"a Sandbox of another group":             func(o *sandbox.Owner) { o.Group = "example.com" },
		"a Sandbox of the extensions":            func(o *sandbox.Owner) { o.Group = sandbox.GroupExtensions },
		"another kind of the group":              func(o *sandbox.Owner) { o.Kind = "SandboxClaim" },
		"a ReplicaSet":                           func(o *sandbox.Owner) { o.Group, o.Kind = "apps", "ReplicaSet" },
		"a Sandbox of a group that ends as ours": func(o *sandbox.Owner) { o.Group = "evil.agents.x-k8s.io" },
	} {
		w := newWorld().pod(func(p *sandbox.Pod) { change(&p.Owners[0]) })
		if got, err := w.resolve(sandbox.Options{}); err != nil || got.Name != "run-1-pod" || got.Claim != "" || got.Sandbox != "" {
			t.Errorf("%s: got %+v, %v; want the pod's own name", name, got, err)
		}
	}
	for name, change := range map[string]func(*sandbox.Owner){
		"an owner that is no controller": func(o *sandbox.Owner) { o.Controller = false },
		"a claim of another group":       func(o *sandbox.Owner) { o.Group = sandbox.GroupAgents },
		"another kind":                   func(o *sandbox.Owner) { o.Kind = "Sandbox" },
	} {
		w := newWorld().sandbox(func(s *sandbox.Sandbox) { change(&s.Owners[0]) })
		if got, err := w.resolve(sandbox.Options{}); err != nil || got.Name != "run-1-pod" || got.Claim != "" || got.Sandbox != "run-1-sb" {
			t.Errorf("Sandbox with %s: got %+v, %v; want the pod's own name", name, got, err)
		}
	}
}

func TestTheOwnerThatCountsIsTheController(t *testing.T) {
	w := newWorld().pod(func(p *sandbox.Pod) {
		p.Owners = append([]sandbox.Owner{{Group: sandbox.GroupAgents, Kind: sandbox.KindSandbox, Name: "other", UID: "x"}}, p.Owners...)
	})
	if got, err := w.resolve(sandbox.Options{}); err != nil || got.Name != "run-1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAClaimThatDoesNotSayYetIsNoContradiction(t *testing.T) {
	w := newWorld().claim(func(c *sandbox.Claim) { c.SandboxName = "" })
	if got, err := w.resolve(sandbox.Options{}); err != nil || got.Name != "run-1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestADrainingPodIsServedToTheEndOfItsGraceIfThatIsAllowed(t *testing.T) {
	w := newWorld().pod(func(p *sandbox.Pod) { p.EndsAt = now.Add(20 * time.Second) })
	got, err := w.resolve(sandbox.Options{AllowTerminating: true})
	if err != nil || !got.EndsAt.Equal(now.Add(20*time.Second)) {
		t.Errorf("got %+v, %v", got, err)
	}
	w.claim(func(c *sandbox.Claim) { c.EndsAt = now.Add(-20 * time.Second) }) // its pods have 30 s
	if got, err = w.resolve(sandbox.Options{AllowTerminating: true}); err != nil || !got.EndsAt.Equal(now.Add(10*time.Second)) {
		t.Errorf("the earliest end counts: got %+v, %v", got, err)
	}
}

func TestTheTenantIsTheNamespaceOrWhatTheAdminSays(t *testing.T) {
	w := newWorld()
	account := w.accounts["default"]
	account.Labels = map[string]string{"tenant": "blue"}
	w.accounts["default"] = account
	if got, err := w.resolve(sandbox.Options{TenantLabel: "tenant"}); err != nil || got.Tenant != "blue" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := w.resolve(sandbox.Options{}); err != nil || got.Tenant != "agents" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWhatCannotBeAskedIsNoRefusal(t *testing.T) {
	for _, kind := range []string{"pod", "sandbox", "claim", "account"} {
		w := newWorld()
		w.broken = kind
		_, err := w.resolve(sandbox.Options{TenantLabel: "tenant"})
		var refused *sandbox.RefusedError
		if !errors.Is(err, errBroken) || errors.As(err, &refused) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	w := newWorld().pod(func(p *sandbox.Pod) { p.Owners = nil })
	w.broken = "claim"
	if agent, err := w.resolve(sandbox.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("a plain pod got a name that may be a claim's: %+v, %v", agent, err)
	}
}
