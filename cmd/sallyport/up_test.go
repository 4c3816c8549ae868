package main_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestDemoHasFiveChecksAndAllHold(t *testing.T) {
	cmd := exec.Command(tool(t, "python"), "demo/demo.py", "--sallyport", binary)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok: ") != 5 || strings.Contains(string(out), "FAIL") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestEverythingIsThereAfterARestart(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "kill -9": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			first, env := up(t, dir)
			key := mint(t, env["RECALL_URL"], mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c"))
			remember(t, env["RECALL_URL"], key, "vim")
			envoys := children(t, first.Process.Pid)
			if len(envoys) != 1 {
				t.Fatalf("children: %v", envoys)
			}

			first.end(t, signal)
			eventually(t, "Envoy ends with up", func() error { return gone(envoys[0]) })
			if signal != syscall.SIGKILL {
				if first.ProcessState.ExitCode() != 0 {
					t.Errorf("exit status %d:\n%s", first.ProcessState.ExitCode(), first.output)
				}
				if _, err := os.Stat(filepath.Join(dir, "env")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("env is still there: %v", err)
				}
			}

			_, env = up(t, dir)
			status, answer, err := call(http.MethodPost, env["RECALL_URL"]+"/v1/history", key, map[string]string{"subject": "user", "predicate": "prefers_editor"})
			if err != nil || status != http.StatusOK {
				t.Errorf("a key from before the restart: %d %v %v", status, answer, err)
			}
			if !recalls(t, env["RECALL_URL"], key, "vim") {
				t.Error("the memory is gone")
			}
		})
	}
}

// remember stores a value that a client then counts on.
func remember(t testing.TB, url, key, value string) {
	t.Helper()
	status, answer, err := call(http.MethodPost, url+"/v1/remember", key, map[string]string{"subject": "user", "predicate": "prefers_editor", "value": value})
	if err != nil || status != http.StatusOK {
		t.Fatalf("remember: %d %v %v", status, answer, err)
	}
}

func recalls(t *testing.T, url, key, value string) bool {
	t.Helper()
	status, answer, err := call(http.MethodPost, url+"/mcp", key, map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "recall", "arguments": map[string]string{"subject": "user", "predicate": "prefers_editor"}},
	})
	if err != nil || status != http.StatusOK {
		t.Fatalf("recall: %d %v %v", status, answer, err)
	}
	content := answer["result"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"].(string)
	return strings.Contains(content, `"value":"`+value+`"`)
}

// children returns the processes that pid started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("children of %d: %v", pid, err)
	}
	var out []int
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread ended
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, child)
		}
	}
	return out
}

func gone(pid int) error {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return errors.New("process " + strconv.Itoa(pid) + " is there")
}

func TestASecondUpSaysWhoIsInTheWay(t *testing.T) {
	dir := shortDir(t)
	first, env := up(t, dir)
	t.Run("on the same directory", func(t *testing.T) {
		_, stderr, status := run(t, "up", "--data", dir, "--listen", "127.0.0.1:0")
		if status == 0 || !strings.Contains(stderr, strconv.Itoa(first.Process.Pid)) {
			t.Errorf("status %d: %s", status, stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "env")); err != nil {
			t.Errorf("it took the first one's env away: %v", err)
		}
	})
	t.Run("on the same address", func(t *testing.T) {
		_, stderr, status := run(t, "up", "--data", shortDir(t), "--listen", strings.TrimPrefix(env["RECALL_URL"], "http://"))
		if status == 0 || !strings.Contains(stderr, "in use") {
			t.Errorf("status %d: %s", status, stderr)
		}
	})
}

func TestUpRefusesWhatCannotWork(t *testing.T) {
	deep := filepath.Join(shortDir(t), strings.Repeat("deep/", 20))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a directory too deep for sockets": {[]string{"--data", deep}, "shorter directory"},
		"an address without a port":        {[]string{"--data", shortDir(t), "--listen", "localhost"}, "HOST:PORT"},
		"a backend that is no address":     {[]string{"--data", shortDir(t), "--backend", "ftp://x"}, "HOST:PORT"},
		"a prefix that takes others along": {[]string{"--data", shortDir(t), "--header-prefix", "x-"}, "prefix"},
		"a key that never lives":           {[]string{"--data", shortDir(t), "--key-ttl", "0s"}, "--key-ttl"},
		"a surface that there is not":      {[]string{"--data", shortDir(t), "--surface", "none"}, "surface"},
		"a flag that there is not":         {[]string{"--dta", "x"}, "--dta"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, status := run(t, append([]string{"up"}, c.args...)...)
			if status == 0 || !strings.Contains(stderr, c.says) {
				t.Errorf("status %d: %s", status, stderr)
			}
		})
	}
}

func TestKeysAreManagedFromTheCommandLine(t *testing.T) {
	dir := shortDir(t)
	p, env := up(t, dir)
	key := mustRun(t, "keys", "mint", "--data", dir, "--namespace", "team:ci", "--note", "for CI", "--expires-in", "1h")
	remember(t, env["RECALL_URL"], key, "nano")
	list := mustRun(t, "keys", "list", "--data", dir)
	id, _, _ := strings.Cut(strings.TrimPrefix(key, "rcl_"), "_")
	if !strings.Contains(list, id) || !strings.Contains(list, "for CI") || strings.Contains(list, key) {
		t.Errorf("list:\n%s", list)
	}
	mustRun(t, "keys", "revoke", "--data", dir, id)
	if status, _, err := call(http.MethodPost, env["RECALL_URL"]+"/v1/predicates", key, nil); err != nil || status != http.StatusUnauthorized {
		t.Errorf("right after it was revoked: %d %v", status, err)
	}
	if _, stderr, status := run(t, "keys", "revoke", "--data", dir, "nope"); status == 0 || !strings.Contains(stderr, "not_found") {
		t.Errorf("an unknown id: %d %s", status, stderr)
	}
	if strings.Contains(p.output.String(), key) {
		t.Error("the key is in the log")
	}
}

func TestAnAgentsKeysEndInOneCallAndItsNeighboursLive(t *testing.T) {
	dir := shortDir(t)
	p, env := up(t, dir)
	keys := map[string][]string{}
	for _, agent := range []string{"run-1", "run-2"} {
		token := mustRun(t, "dev", "token", "--data", dir, "--pod", "pod-of-"+agent, "--claim", agent)
		for range 2 {
			key := mint(t, env["RECALL_URL"], token)
			remember(t, env["RECALL_URL"], key, "vim") // and the door keeps it
			keys[agent] = append(keys[agent], key)
		}
	}
	if _, stderr, status := run(t, "keys", "revoke", "--data", dir); status == 0 || !strings.Contains(stderr, "--all") {
		t.Errorf("without a name: %d %s", status, stderr)
	}
	if _, stderr, status := run(t, "keys", "revoke", "--data", dir, "--tenant", "agents", "--agent", ""); status == 0 || !strings.Contains(stderr, "agent is empty") {
		t.Errorf("with an empty name: %d %s", status, stderr)
	}
	said := mustRun(t, "keys", "revoke", "--data", dir, "--agent", "agents:run-1", "--reason", "it ran away")
	if !strings.HasSuffix(said, "\n2 revoked") || strings.Count(said, "pod-of-run-1") != 2 {
		t.Errorf("it said:\n%s", said)
	}
	for agent, want := range map[string]int{"run-1": http.StatusUnauthorized, "run-2": http.StatusOK} {
		for _, key := range keys[agent] {
			if status, _, err := call(http.MethodPost, env["RECALL_URL"]+"/v1/predicates", key, nil); err != nil || status != want {
				t.Errorf("right after the keys of run-1 were revoked, one of %s: %d %v, want %d", agent, status, err, want)
			}
		}
	}
	if list := mustRun(t, "keys", "list", "--data", dir); strings.Count(list, "it ran away") != 2 {
		t.Errorf("list:\n%s", list)
	}
	if said := mustRun(t, "keys", "revoke", "--data", dir, "--all"); !strings.Contains(said, "2 revoked") || !strings.Contains(said, "admin keys live on") {
		t.Errorf("it said:\n%s", said)
	}
	if said := mustRun(t, "keys", "revoke", "--data", dir, "--all"); !strings.HasPrefix(said, "0 revoked") {
		t.Errorf("again: %s", said)
	}
	for _, list := range keys {
		for _, key := range list {
			if strings.Contains(p.output.String(), key) {
				t.Error("a key is in the log")
			}
		}
	}
}

func TestTheRealClientRenewsAsItGoes(t *testing.T) {
	dir := shortDir(t)
	p, env := up(t, dir, "--key-ttl", "2s")
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c")), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `
import time
from polign_recall import Client
end = time.monotonic() + 6   # three lives of a key
n = 0
with Client.from_env() as memory:
    while time.monotonic() < end:
        n += 1
        memory.remember("user", "uses_technology", f"tool-{n}")
        time.sleep(0.1)
    found = {b.value for b in memory.recall("user", "uses_technology", limit=1000)}
assert found == {f"tool-{i+1}" for i in range(n)}, (n, len(found))
print("kept", n)
`
	cmd := exec.Command(tool(t, "python"), "-c", script)
	cmd.Env = append(os.Environ(), "RECALL_URL="+env["RECALL_URL"], "RECALL_TOKEN_FILE="+token)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kept") {
		t.Errorf("%v\n%s", err, out)
	}
	if n := strings.Count(p.output.String(), "key minted"); n < 4 {
		t.Errorf("%d keys were minted in three lives, half each", n)
	}
	if !strings.Contains(p.output.String(), "renew_with_token") {
		t.Error("a key alone was not told to bring its token")
	}
}

func TestAKeyEndsWhenItsPodOrClaimDoes(t *testing.T) {
	dir := shortDir(t)
	_, env := up(t, dir)
	for name, end := range map[string][]string{"pod": {"dev", "pod", "delete", "--pod", "of-pod"}, "claim": {"dev", "claim", "delete", "--claim", "claim-of-claim"}} {
		key := mint(t, env["RECALL_URL"], mustRun(t, "dev", "token", "--data", dir, "--pod", "of-"+name, "--claim", "claim-of-"+name))
		remember(t, env["RECALL_URL"], key, "vim")
		mustRun(t, append(end, "--data", dir)...)
		eventually(t, "the key of the deleted "+name+" is refused", func() error {
			status, _, err := call(http.MethodPost, env["RECALL_URL"]+"/v1/predicates", key, nil)
			if err == nil && status != http.StatusUnauthorized {
				err = errors.New(strconv.Itoa(status))
			}
			return err
		})
	}
}

func TestTheHolderOfAKeyAsksWhatItReaches(t *testing.T) {
	dir := shortDir(t)
	_, env := up(t, dir)
	key := mint(t, env["RECALL_URL"], mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c"))
	status, answer, err := call(http.MethodGet, env["RECALL_URL"]+"/v1/whoami", key, nil)
	if err != nil || status != http.StatusOK || answer["namespace"] != "agents:c" || answer["sandbox"] == nil {
		t.Errorf("%d %v %v", status, answer, err)
	}
}

func TestOnlyEnvoyListensOnTCP(t *testing.T) {
	p, env := up(t, shortDir(t))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(env["RECALL_URL"], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if ports := listening(t, p.Process.Pid); len(ports) != 0 {
		t.Errorf("sallyport listens on %v", ports)
	}
	envoy := listening(t, children(t, p.Process.Pid)[0])
	if len(envoy) != 1 || strconv.Itoa(envoy[0]) != port {
		t.Errorf("Envoy listens on %v, want %s alone", envoy, port)
	}
}

// listening returns the TCP ports that a process listens on.
func listening(t *testing.T, pid int) []int {
	t.Helper()
	proc := "/proc/" + strconv.Itoa(pid)
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, fd := range fds {
		if target, err := os.Readlink(proc + "/fd/" + fd.Name()); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	const listen = "0A"
	ports := map[int]bool{} // Envoy has a descriptor a worker
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(proc + "/net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == listen && own[f[9]] {
				_, hex, _ := strings.Cut(f[1], ":")
				port, err := strconv.ParseInt(hex, 16, 32)
				if err != nil {
					t.Fatal(err)
				}
				ports[int(port)] = true
			}
		}
	}
	var out []int
	for port := range ports {
		out = append(out, port)
	}
	return out
}
