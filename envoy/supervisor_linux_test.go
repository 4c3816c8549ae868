package envoy_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"sallyport/envoy"
	"sallyport/envoy/envoytest"
	"sallyport/gateway/xds"
)

// The test binary runs itself as the parent of an Envoy, and is then killed.
func TestEnvoyDiesWithItsParent(t *testing.T) {
	if dir := os.Getenv("ENVOY_TEST_PARENT"); dir != "" {
		g := small(t)
		g.Admin = xds.Endpoint("unix:" + filepath.Join(dir, "admin.sock"))
		supervisor, err := envoy.New(envoy.Config{Gateway: g, AccessLog: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		_ = supervisor.Run(context.Background()) // until killed
		return
	}
	dir := envoytest.SocketDir(t)
	parent := exec.Command(os.Args[0], "-test.run=^TestEnvoyDiesWithItsParent$")
	parent.Env = append(os.Environ(), "ENVOY_TEST_PARENT="+dir)
	parent.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	parent.Stdout, parent.Stderr = &output, &output // held open by Envoy, too
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "admin.sock")
	envoytest.Eventually(t, "Envoy's admin socket answers", func() bool { return dials(socket) })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	envoytest.Eventually(t, "Envoy is gone with its parent", func() bool { return !dials(socket) })
	if err := parent.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		t.Error("something still holds the parent's output open")
	}
}

func dials(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func TestEnvoySeesNoneOfOurSecrets(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://user:secret@host/db")
	e := envoytest.Start(t, small(t))
	for _, file := range []string{"environ", "cmdline"} {
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.Supervisor.PID()), file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte("secret")) {
			t.Errorf("%s holds a secret", file)
		}
	}
}
