package kubernetes_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sallyport/exchange/kubernetes/kubetest"
)

func TestAMissingPermissionIsNamed(t *testing.T) {
	get := []string{"get"}
	for what, c := range map[string]struct {
		without kubetest.Without
		nobody  bool
		tenant  bool
		pod     func(r *rig) *corev1.Pod
		says    []string
	}{
		"tokenreviews":    {nobody: true, says: []string{"create tokenreviews"}},
		"pods":            {without: kubetest.Without{Resource: "pods", Verbs: get}, says: []string{"get pods in namespace "}},
		"sandboxes":       {without: kubetest.Without{Resource: "sandboxes", Verbs: get}, says: []string{"get sandboxes.agents.x-k8s.io in namespace "}},
		"sandboxclaims":   {without: kubetest.Without{Resource: "sandboxclaims", Verbs: get}, says: []string{"get sandboxclaims.extensions.agents.x-k8s.io in namespace "}},
		"serviceaccounts": {without: kubetest.Without{Resource: "serviceaccounts", Verbs: get}, tenant: true, says: []string{"get serviceaccounts in namespace "}},
		"claims, of a plain pod whose name might be a claim's": {
			without: kubetest.Without{Resource: "sandboxclaims", Verbs: get}, says: []string{"get sandboxclaims.extensions.agents.x-k8s.io in namespace "},
			pod: func(r *rig) *corev1.Pod { return r.Pod("solo", "default") },
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := defaults()
			s.leave = []kubetest.Without{c.without}
			if c.nobody {
				s.config = kubetest.Shared(t).NobodyConfig(t, t.Name())
			}
			if c.tenant {
				s.options.TenantLabel = "example.com/tenant"
			}
			r := newRig(t, s)
			if c.pod == nil {
				c.pod = func(r *rig) *corev1.Pod { return r.Cold("run-1").Pod }
			}
			a := r.refused(r.exchange(r.Token(c.pod(r), audience)), http.StatusServiceUnavailable, "not_permitted", c.says...)
			if what != "tokenreviews" && !strings.Contains(a.body.Error.Message, "in namespace "+r.Name+":") {
				t.Errorf("the message %q does not name the namespace", a.body.Error.Message)
			}
			if a.header.Get("Retry-After") == "" {
				t.Error("a 503 without Retry-After")
			}
			if log := r.log.String(); !strings.Contains(log, `"reason":"not_permitted"`) || !strings.Contains(log, "forbidden") {
				t.Errorf("the log does not say what the API server said: %s", log)
			}
		})
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(code)
	}
}

// only makes a fault of calls to paths that end so.
func only(suffix string, fault http.HandlerFunc) func(*http.Request) http.HandlerFunc {
	return func(r *http.Request) http.HandlerFunc {
		if strings.HasSuffix(r.URL.Path, suffix) {
			return fault
		}
		return nil
	}
}

func TestAnOutageIsNeverARefusalAndNeverRemembered(t *testing.T) {
	for what, fault := range map[string]http.HandlerFunc{
		"hangs":                kubetest.Hang,
		"too many requests":    status(http.StatusTooManyRequests, "Retry-After", "1"),
		"internal error":       status(http.StatusInternalServerError),
		"unavailable":          status(http.StatusServiceUnavailable),
		"bad gateway":          status(http.StatusBadGateway),
		"does not know itself": status(http.StatusUnauthorized), // our own credentials
		"answers no JSON":      status(http.StatusOK),
	} {
		for _, where := range []string{"/tokenreviews", "/pods/run-1", "/sandboxes/run-1", "/sandboxclaims/run-1"} {
			t.Run(what+" at "+where, func(t *testing.T) {
				t.Parallel() // most of a hang is waiting
				cluster := kubetest.Shared(t)
				proxy := cluster.Proxy(t)
				s := defaults()
				s.config = proxy.Config(cluster.ExchangeConfig(t, t.Name()))
				r := newRig(t, s)
				token := r.Token(r.Cold("run-1").Pod, audience)
				proxy.Fault(only(where, fault))
				began := time.Now()
				a := r.refused(r.exchange(token), http.StatusServiceUnavailable, "unavailable", "try again")
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("the answer took %s", took)
				}
				if a.header.Get("Retry-After") == "" {
					t.Error("a 503 without Retry-After")
				}
				proxy.Fault(nil)
				r.gets(r.exchange(token), "run-1")
			})
		}
	}
}

func TestAnAPIServerThatIsDownIsAnOutage(t *testing.T) {
	cluster := kubetest.Shared(t)
	proxy := cluster.Proxy(t)
	s := defaults()
	s.config = proxy.Config(cluster.ExchangeConfig(t, t.Name()))
	r := newRig(t, s)
	token := r.Token(r.Pod("solo", "default"), audience)
	proxy.Close()
	r.refused(r.exchange(token), http.StatusServiceUnavailable, "unavailable", "try again")
}

func TestAnAPIServerThatHangsOrLosesItsEtcdIsAnOutage(t *testing.T) {
	for what, f := range map[string]struct{ stop, resume func(*kubetest.Cluster) error }{
		"the API server hangs": {(*kubetest.Cluster).Pause, (*kubetest.Cluster).Resume},
		"its etcd hangs":       {(*kubetest.Cluster).PauseEtcd, (*kubetest.Cluster).ResumeEtcd},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, defaults())
			token := r.Token(r.Cold("run-1").Pod, audience)
			if err := f.stop(r.cluster); err != nil {
				t.Fatal(err)
			}
			var resume sync.Once
			goOn := func() { resume.Do(func() { _ = f.resume(r.cluster) }) } // the next calls tell
			defer goOn()
			began := time.Now()
			a := r.exchange(token)
			took := time.Since(began)
			goOn()
			r.refused(a, http.StatusServiceUnavailable, "unavailable", "try again")
			if took > 3*time.Second {
				t.Errorf("the answer took %s", took)
			}
			r.eventually("it is well again", func() bool { return r.exchange(token).status == http.StatusCreated })
		})
	}
}

func TestTheExchangesOwnLimitIsAnOutageToo(t *testing.T) {
	s := defaults()
	s.client.QPS, s.client.Burst = 0.01, 8 // just enough for the first exchange, which looks for versions as well
	r := newRig(t, s)
	c := r.Cold("run-1")
	r.gets(r.exchange(r.Token(c.Pod, audience)), "run-1")
	began := time.Now()
	r.refused(r.exchange(r.Token(c.Pod, audience)), http.StatusServiceUnavailable, "unavailable", "try again")
	if took := time.Since(began); took > time.Second {
		t.Errorf("waited %s for a turn that cannot come", took)
	}
}

func TestTheServedVersionIsDiscoveredAndFollowed(t *testing.T) {
	r := newRig(t, defaults())
	c := r.Cold("run-1")
	token := r.Token(c.Pod, audience)
	getsKey := func() { r.gets(r.send(http.MethodPost, "/v1/auth/kubernetes", tokenBody(token)), "run-1") }
	getsKey()
	for _, step := range []struct {
		version string
		served  bool
	}{{"v1alpha1", false}, {"v1alpha1", true}, {"v1beta1", false}, {"v1beta1", true}} {
		for _, kind := range []string{"Sandbox", "SandboxClaim"} {
			r.cluster.SetServed(t, kind, step.version, step.served)
		}
		getsKey()
	}
	// One kind of a group may be served in a version in which another one is not.
	r.cluster.SetServed(t, "SandboxClaim", "v1beta1", false)
	getsKey()
}
