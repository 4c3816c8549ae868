package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/agent"
	"sallyport/memory/belief"
	"sallyport/memory/refusal"
	"sallyport/memory/sqlitestore"
)

var (
	ctx   = context.Background()
	start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
)

func day(n int) time.Time { return start.AddDate(0, 0, n) }

func on(n int) string { return day(n).Format(time.RFC3339) }

// rig is a service on a file, with a clock that the test moves.
type rig struct {
	*testing.T
	*memory.Service
	path   string
	store  *sqlitestore.Store
	vocab  belief.Vocabulary
	mu     sync.Mutex
	clock  time.Time
	caller memory.Caller
}

func newRig(t *testing.T, vocab belief.Vocabulary) *rig {
	t.Helper()
	r := &rig{T: t, path: filepath.Join(t.TempDir(), "memory.db"), vocab: vocab, clock: day(100), caller: memory.Caller{Namespace: "agents:run-1"}}
	r.open()
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

func (r *rig) open() {
	r.Helper()
	var err error
	if r.store, err = sqlitestore.Open(ctx, r.path); err != nil {
		r.Fatal(err)
	}
	r.Service = memory.NewService(r.store, memory.Options{Vocabulary: &r.vocab, Now: r.now})
}

// crash ends the service as kill -9 would, and starts it again on the same file.
func (r *rig) crash() {
	r.Helper()
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	r.open()
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(time.Microsecond) // no two readings of a clock are the same
	return r.clock
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(d)
}

// remember states "subject predicate value", perhaps "@" a day, and returns what it came to.
func (r *rig) remember(statement string, refs ...belief.Ref) memory.RememberResult {
	r.Helper()
	result, err := r.Remember(ctx, r.caller, r.args(statement, refs...))
	if err != nil {
		r.Fatalf("remember %s: %v", statement, err)
	}
	return result.(memory.RememberResult)
}

func (r *rig) args(statement string, refs ...belief.Ref) memory.RememberArgs {
	r.Helper()
	statement, date, dated := strings.Cut(statement, "@")
	f := strings.SplitN(statement, " ", 3)
	value, err := json.Marshal(f[2])
	if err != nil {
		r.Fatal(err)
	}
	a := memory.RememberArgs{Subject: &f[0], Predicate: &f[1], Value: value}
	if len(refs) > 0 {
		a.Replaces = &refs
	}
	if dated {
		var n int
		if _, err := fmt.Sscan(date, &n); err != nil {
			r.Fatal(err)
		}
		a.ObservedAt = on(n)
	}
	return a
}

func (r *rig) recall(a memory.RecallArgs) []belief.Belief {
	r.Helper()
	found, err := r.Recall(ctx, r.caller, a)
	if err != nil {
		r.Fatalf("recall %+v: %v", a, err)
	}
	return found
}

func (r *rig) forget(subject, predicate, rawValue string) int {
	r.Helper()
	a := memory.ForgetArgs{Subject: subject, Predicate: predicate}
	if rawValue != "" {
		a.Value = memory.OptionalJSON{Given: true, Raw: json.RawMessage(rawValue)}
	}
	out, err := r.Forget(ctx, r.caller, a)
	if err != nil {
		r.Fatalf("forget: %v", err)
	}
	return out.Withdrawn
}

func values(found []belief.Belief) string {
	out := make([]string, len(found))
	for i, b := range found {
		out[i] = b.Value.String()
	}
	return strings.Join(out, " | ")
}

func want[T comparable](t testing.TB, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// refused checks that an error is a refusal that says something.
func refused(t testing.TB, err error, saying string) {
	t.Helper()
	r := refusal.As(err)
	if r == nil || !strings.Contains(r.Text, saying) {
		t.Errorf("got %v, want a refusal that says %q", err, saying)
	}
}

func as(namespace, pod string) memory.Caller {
	return memory.Caller{Namespace: namespace, Owner: agent.Owner{Pod: pod}}
}
