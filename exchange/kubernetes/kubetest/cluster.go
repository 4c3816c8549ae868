package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Issuer is the issuer of the cluster's service-account tokens, and the audience of those that ask for none.
const Issuer = "https://kubernetes.default.svc.cluster.local"

const (
	startTimeout = 90 * time.Second // 3 to 5 s on a quiet machine; test packages share the cores
	stopGrace    = 10 * time.Second
	attempts     = 3 // a free port may be taken before the server is up
)

// Cluster is a running Kubernetes API.
type Cluster struct {
	Admin   kubernetes.Interface // may do everything
	Dynamic dynamic.Interface    // may do everything
	config  *rest.Config
	creds   *credentials
	dir     string
	etcd    *process
	api     *process
}

// Start starts a cluster. Stop ends it.
func Start(ctx context.Context) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "kubetest-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	c := &Cluster{dir: dir}
	if c.creds, err = newCredentials(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for range attempts {
		if err = c.try(ctx); err == nil {
			break
		}
		c.stopServers()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.prepare(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop ends the servers and removes what they wrote.
func (c *Cluster) Stop() {
	c.stopServers()
	_ = os.RemoveAll(c.dir) // it is in the temporary directory
}

// stopServers ends the API server before the etcd that it needs for that.
func (c *Cluster) stopServers() {
	c.api.stop(stopGrace)
	c.etcd.stop(stopGrace)
	c.api, c.etcd = nil, nil
}

// Pause makes the API server hang: connections stay open, and nothing answers.
func (c *Cluster) Pause() error { return c.api.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (c *Cluster) Resume() error { return c.api.signal(syscall.SIGCONT) }

// PauseEtcd makes the API server's store hang.
func (c *Cluster) PauseEtcd() error { return c.etcd.signal(syscall.SIGSTOP) }

// ResumeEtcd ends a PauseEtcd.
func (c *Cluster) ResumeEtcd() error { return c.etcd.signal(syscall.SIGCONT) }

func (c *Cluster) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	clientURL, peerURL, secure := loopback("http", ports[0]), loopback("http", ports[1]), ports[2]
	etcdData := filepath.Join(c.dir, "etcd-"+strconv.Itoa(ports[0]))
	if c.etcd, err = start(c.dir, tool("etcd"),
		"--data-dir="+etcdData, "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL,
	); err != nil {
		return err
	}
	if err := os.WriteFile(c.creds.file("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	if c.api, err = start(c.dir, tool("kube-apiserver"),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+strconv.Itoa(secure), "--etcd-servers="+clientURL,
		"--tls-cert-file="+c.creds.file("serving.crt"), "--tls-private-key-file="+c.creds.file("serving.key"),
		"--client-ca-file="+c.creds.file("ca.crt"),
		"--service-account-issuer="+Issuer, "--api-audiences="+Issuer,
		"--service-account-key-file="+c.creds.file("accounts.key"), "--service-account-signing-key-file="+c.creds.file("accounts.key"),
		"--authorization-mode=RBAC", "--anonymous-auth=false", "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		// The audit log has a line by the time that a call is answered, so that a test can count calls.
		"--audit-policy-file="+c.creds.file("audit.yaml"), "--audit-log-path="+c.auditLog(), "--audit-log-mode=blocking",
	); err != nil {
		return err
	}
	c.config = &rest.Config{
		Host: loopback("https", secure),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.creds.CAPEM, CertData: c.creds.AdminCert, KeyData: c.creds.AdminKey,
		},
		QPS:            -1, // tests are in a hurry
		WarningHandler: rest.NoWarnings{},
	}
	if c.Admin, err = kubernetes.NewForConfig(c.config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return c.waitReady(ctx)
}

// waitReady waits until the API server says that it is ready, or one of the two has ended.
func (c *Cluster) waitReady(ctx context.Context) error {
	const every = 100 * time.Millisecond
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := c.Admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(one)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-c.etcd.exited:
			return errors.New("etcd ended: " + c.etcd.lastWords())
		case <-c.api.exited:
			return errors.New("kube-apiserver ended: " + c.api.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready after %s: %w: %s", startTimeout, err, c.api.lastWords())
		case <-time.After(every):
		}
	}
}

func loopback(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}

// freePorts returns ports that nobody listens on just now.
func freePorts(n int) ([]int, error) {
	out := make([]int, n)
	for i := range out {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() //nolint:errcheck // held until all are found, so that they differ
		out[i] = l.Addr().(*net.TCPAddr).Port
	}
	return out, nil
}

// tool is where `make kube-tools` puts a program, from the root of the repository.
func tool(name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..", ".tools", "kube", name)
}
