package api_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// script is what an agent's program does with the Python client of the Memory API.
const script = `
import sys
from polign_recall import ActionEnd, Client, RecallError

url = sys.argv[1]
one, two = Client(url=url, api_key="one/pod-1", agent=True), Client(url=url, api_key="two")

assert not one.remember("user", "prefers_editor", "vim").already_known
r = one.remember("user", "prefers_editor", "zed", replaces=[{"predicate": "name", "value": "nobody"}])
assert [b.value for b in r.superseded] == ["vim"] and len(r.unreplaced) == 1, r
b, = one.recall("user", "prefers_editor")
assert b.value == "zed" and b.replaced[0].value == "vim" and b.days_ago == 0, b
assert [b.value for b in one.recall(query="which editor?")] == ["zed"]
assert [e.value for e in one.history("user", "prefers_editor")] == ["vim", "zed"]
assert [s.change for s in one.timeline("user", "prefers_editor").changes] == ["stated", "replaced"]
assert len(one.diff("2020-01-01T00:00:00Z")) == 1
assert len(one.predicates()) == 16
t = one.remember(text="I use Emacs now.", statements=[
    {"subject": "user", "predicate": "uses_technology", "value": "Emacs", "evidence": "I use Emacs"}])
assert t.results[0].stored.value == "Emacs" and t.episode is not None, t
assert one.recall("user", "uses_technology", with_sources=True)[0].source_text == "I use Emacs now."
assert one.forget("user", "prefers_editor", all=True) == 1 and one.recall("user", "prefers_editor") == []
assert two.recall("user") == [] and two.history("user", "prefers_editor") == []

with one.resume("worker") as a:
    assert a.context.fresh and a.lease_held
    a.update_working_state(goal="use Emacs well", plan=["a", "b"])
    a.record_turn("user", "hello", message_id="m1")
    a.set_pointer("wip", "git_ref", {"branch": "b"})
    ref = a.store_output("big", tool="t").ref
    a.begin_action("send", "external", {"x": 1})
    a.begin_action("read", "pure")

pod2 = Client(url=url, api_key="one/pod-2", agent=True)
a = one.resume("worker")
assert not a.context.fresh and [x.status for x in a.context.pending_actions] == ["unknown"], a.context
assert a.context.working_state.goal == "use Emacs well" and a.fetch_output(ref).content == "big"
assert [m.value for m in a.context.memories] == ["Emacs", "I use Emacs now."], a.context.memories
b = pod2.resume("worker")
try:
    a.record_turn("user", "late")
    raise SystemExit("a write under a lost lease passed")
except RecallError as e:
    assert e.code == "lease_lost", e.code
report = b.reconcile(lambda x: ActionEnd("done", result="sent"))
assert [x.status for x in report.closed] == ["done"] and not report.open, report
assert [t.content for t in b.recent_turns()] == ["hello", "sent"]
assert b.release() and not b.release()
print("ok")
`

func TestThePythonClient(t *testing.T) {
	python := tool(t, ".tools/py/bin/python")
	r := newRig(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", script, r.url)
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Fatalf("%v\n%s\n%s", err, out, r.log)
	}
}

// tool finds what make tools lays into the module's root.
func tool(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	full := filepath.Join(dir, path)
	if _, err := os.Stat(full); err != nil {
		t.Fatalf("%v: run make tools", err)
	}
	return full
}
