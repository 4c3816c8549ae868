package kubernetes_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sallyport/exchange/kubernetes"
	"sallyport/exchange/kubernetes/kubetest"
)

func TestAKubeconfigSaysHowToReachTheCluster(t *testing.T) {
	config, err := kubernetes.LoadConfig(kubetest.Kubeconfig(t, kubetest.Shared(t).ExchangeConfig(t, "")))
	if err != nil {
		t.Fatal(err)
	}
	s := defaults()
	s.config = config
	r := newRig(t, s)
	r.gets(r.exchange(r.Token(r.Cold("run-1").Pod, audience)), "run-1")
}

func TestWithoutAWayToTheClusterItSaysWhatIsMissing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := kubernetes.LoadConfig(""); err == nil || !strings.Contains(err.Error(), "name a kubeconfig file") {
		t.Errorf("outside a cluster: %v", err)
	}
	missing := filepath.Join(t.TempDir(), "nope")
	if _, err := kubernetes.LoadConfig(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("no such file: %v", err)
	}
}
