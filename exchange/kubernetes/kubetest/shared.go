package kubetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"
)

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Main runs a package's tests and ends the cluster that they shared. Call it from TestMain.
func Main(m *testing.M) {
	status := m.Run()
	StopShared()
	os.Exit(status)
}

// StopShared ends the cluster that tests shared, if any asked for it: for a TestMain that has more to do than Main.
func StopShared() {
	if shared.cluster != nil {
		shared.cluster.Stop()
	}
}

// Shared returns the cluster of this test binary, which the first test to ask starts. The package's TestMain must be
// Main, or end with StopShared.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(tool(name)); errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s is missing: run `make kube-tools`", name)
		}
	}
	shared.once.Do(func() { shared.cluster, shared.err = Start(context.Background()) })
	if shared.err != nil {
		t.Fatalf("start the Kubernetes API: %v", shared.err)
	}
	return shared.cluster
}
