package main_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/exchange/kubernetes/kubetest"
)

// onCluster runs `up` on the real Kubernetes API, with the permissions of deploy/rbac.yaml in one namespace, and a pod
// whose projected token is in a file.
func onCluster(t testing.TB, flags ...string) (p *process, url, tokenFile string, ns *kubetest.Namespace, chain kubetest.Chain) {
	t.Helper()
	cluster := kubetest.Shared(t)
	ns = cluster.Namespace(t)
	ns.Allow()
	chain = ns.Cold("run-1")
	tokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(ns.Token(chain.Pod, "recall")), 0o600); err != nil {
		t.Fatal(err)
	}
	config := kubetest.Kubeconfig(t, cluster.ExchangeConfig(t, t.Name()))
	p, env := up(t, shortDir(t), append([]string{"--kubeconfig", config}, flags...)...)
	if env["RECALL_TOKEN_FILE"] != "" {
		t.Errorf("env names a token that no pod of the cluster has: %v", env)
	}
	return p, env["RECALL_URL"], tokenFile, ns, chain
}

func TestTheRealClientOnATokenOfARealCluster(t *testing.T) {
	p, url, token, _, _ := onCluster(t, "--key-ttl", "2s")
	script := `
import time
from polign_recall import Client
end = time.monotonic() + 4   # two lives of a key, renewed past the half of each
n = 0
with Client.from_env() as memory:
    while time.monotonic() < end:
        n += 1
        memory.remember("user", "uses_technology", f"tool-{n}")
        time.sleep(0.1)
    assert len(memory.recall("user", "uses_technology", limit=1000)) == n
    with memory.resume("run-1") as agent:
        agent.update_working_state(goal="done")
print("kept", n)
`
	cmd := exec.Command(tool(t, "python"), "-c", script)
	cmd.Env = append(os.Environ(), "RECALL_URL="+url, "RECALL_TOKEN_FILE="+token)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "kept") {
		t.Errorf("%v\n%s", err, out)
	}
	if n := strings.Count(p.output.String(), "key minted"); n < 3 {
		t.Errorf("%d keys were minted in two lives, half each", n)
	}
}

func TestRecallConnectOnATokenOfARealCluster(t *testing.T) {
	_, url, token, _, _ := onCluster(t)
	cmd := exec.Command(tool(t, "recall"), "connect", "-server", url, "-token-file", token)
	cmd.Stdin = strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"remember","arguments":{"subject":"user","predicate":"prefers_editor","value":"vim"}}}`,
	}, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"protocolVersion":"2025-06-18"`) || !strings.Contains(string(out), "vim") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAKeyEndsWithItsPodOfARealCluster(t *testing.T) {
	p, url, token, ns, chain := onCluster(t)
	text, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	key := mint(t, url, string(text))
	remember(t, url, key, "vim")
	eventually(t, "the namespace is watched", func() error {
		if !strings.Contains(p.output.String(), "watching pods") {
			return errors.New("not yet")
		}
		return nil
	})
	ns.DeletePod(chain.Pod.Name, 0)
	began := time.Now()
	eventually(t, "the key is refused", func() error {
		status, _, err := call(http.MethodPost, url+"/v1/predicates", key, nil)
		if err == nil && status != http.StatusUnauthorized {
			err = errors.New("it is still good")
		}
		return err
	})
	t.Logf("refused %s after the pod was deleted", time.Since(began))
	status, _, err := call(http.MethodPost, url+"/v1/auth/kubernetes", "", map[string]string{"token": string(text)})
	if err != nil || status != http.StatusUnauthorized {
		t.Errorf("the leftover token: %d %v", status, err)
	}
}

// BenchmarkPodDeletedToFirstRefusal is how long a key works after `kubectl delete pod --grace-period=0`: through the watch,
// the key store's push, the door and Envoy. Run it with -benchtime=50x.
func BenchmarkPodDeletedToFirstRefusal(b *testing.B) {
	_, url, _, ns, _ := onCluster(b)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		chain := ns.Cold("run-b-" + strconv.Itoa(i))
		key := mint(b, url, ns.Token(chain.Pod, "recall"))
		good := func() bool {
			status, _, err := call(http.MethodPost, url+"/v1/predicates", key, nil)
			if err != nil {
				b.Fatal(err)
			}
			return status == http.StatusOK
		}
		if !good() {
			b.Fatal("the key is not good before its pod is deleted")
		}
		ns.DeletePod(chain.Pod.Name, 0)
		began := time.Now()
		for good() {
			if time.Since(began) > deadline {
				b.Fatal("the key is still good")
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(took[len(took)-1].Seconds()*1000, "max-ms")
}
