package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"sallyport/exchange"
	"sallyport/exchange/kubernetes"
	"sallyport/exchange/kubernetes/watch"
	"sallyport/exchange/sandbox"
	"sallyport/internal/keystore"
	"sallyport/internal/telemetry"
)

// kubeFlags say how a Kubernetes cluster is asked whose a token is, and what its answer means.
type kubeFlags struct {
	Kubeconfig       string   `help:"File that says how to reach the cluster; a pod in it needs none." placeholder:"FILE" type:"path"`
	KubeQPS          float32  `name:"kube-qps" help:"Calls a second to the API server, for exchanges, at most: one each with watches, four without." default:"400"`
	KubeBurst        int      `name:"kube-burst" help:"How many of them may come at once." default:"800"`
	TenantLabel      string   `help:"Label of the service account that says the tenant, in the place of its namespace." placeholder:"NAME"`
	AgentLabel       string   `help:"Label of a pod without a claim that says the agent's name, in the place of the pod's." placeholder:"NAME"`
	AllowTerminating bool     `help:"Serve pods that are being deleted until their grace period is over."`
	Watch            bool     `help:"Watch pods and what holds them, so that a key ends with its pod." default:"true" negatable:""`
	WatchNamespace   []string `help:"Watch this namespace from the start; others are watched when they have a key. May be repeated." placeholder:"NAME"`
	Offline          bool     `help:"Verify tokens by the cluster's published keys, without a TokenReview for each."`
	PodEvents        bool     `help:"Tell a pod's owner why it got no key, by an Event on the pod, where that is permitted." default:"true" negatable:""`
	ClusterAdmins    bool     `help:"Let users of the cluster manage keys, as its RBAC says (deploy/rbac-admins.yaml)."`
}

func (f kubeFlags) validate() error {
	if f.KubeQPS <= 0 || f.KubeBurst <= 0 {
		return fmt.Errorf("--kube-qps %g and --kube-burst %d: give numbers above zero", f.KubeQPS, f.KubeBurst)
	}
	for flag, label := range map[string]string{"--tenant-label": f.TenantLabel, "--agent-label": f.AgentLabel} {
		if wrong := validation.IsQualifiedName(label); label != "" && len(wrong) > 0 {
			return fmt.Errorf("%s %q is no label's name: %s", flag, label, strings.Join(wrong, "; "))
		}
	}
	if !f.Watch && len(f.WatchNamespace) > 0 {
		return errors.New("--watch-namespace and --no-watch contradict each other")
	}
	return nil
}

// voucher makes a Kubernetes cluster say whose a token is. The cluster is not asked yet: an exchange that starts while the
// API server is away answers 503 until it is back.
func (f kubeFlags) voucher(store keystore.Store, m mintFlags, spans *telemetry.Tracing, log *slog.Logger) (voucher, error) {
	if err := f.validate(); err != nil {
		return voucher{}, err
	}
	config, err := kubernetes.LoadConfig(f.Kubeconfig)
	if err != nil {
		return voucher{}, err
	}
	klog.SetSlogLogger(log.With("part", "client-go")) // which would write to stderr in a form of its own
	client, err := kubernetes.NewClient(config, kubernetes.Options{
		QPS: f.KubeQPS, Burst: f.KubeBurst, CallTimeout: kubernetes.DefaultCallTimeout, Wrap: spans.KubernetesTransport,
	})
	if err != nil {
		return voucher{}, err
	}
	authenticator := &exchange.PodAuthenticator{
		Reviewer: kubernetes.NewReviewer(client, m.Audience, time.Now),
		Cluster:  kubernetes.Cluster{Client: client},
		Options: sandbox.Options{
			RequireClaim: m.RequireClaim, AllowTerminating: f.AllowTerminating, TenantLabel: f.TenantLabel, AgentLabel: f.AgentLabel, Now: time.Now,
		},
		Timeout: kubernetes.DefaultTimeout,
	}
	if f.Offline {
		authenticator.Reviewer = kubernetes.NewOffline(client, m.Audience, time.Now)
	}
	v := voucher{authenticator: authenticator}
	if f.PodEvents {
		events := kubernetes.NewEvents(client, time.Now, log)
		authenticator.Refused = events.Refused
		v.parts = append(v.parts, quietly(events.Run))
	}
	if f.ClusterAdmins {
		v.admins = kubernetes.NewAdmins(client, time.Now)
	}
	if f.Watch {
		w := watch.New(watch.Options{
			Client: client, Store: store, Rules: authenticator.Options, Namespaces: f.WatchNamespace, Now: time.Now, Log: log,
		})
		authenticator.Watched, v.minted = w.Cluster(), w.Minted
		v.parts = append(v.parts, quietly(w.Run))
	}
	return v, nil
}
