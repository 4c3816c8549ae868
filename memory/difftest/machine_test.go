package difftest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tooBusy is the share of the machine that neighbours may take before figures mean nothing.
const tooBusy = 0.25

// tick is USER_HZ, which Linux never changes.
const tick = 10 * time.Millisecond

// machine watches how much of the CPU is taken, and by whom.
type machine struct {
	root       string // in the command line of the reference's processes, which do not stay our children
	took       time.Duration
	busy, ours time.Duration
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{root: filepath.Dir(t.TempDir())}
}

// during measures what others took while something ran.
func (m *machine) during(t *testing.T, run func()) {
	t.Helper()
	began, busy, ours := time.Now(), busyTime(t), m.ownTime()
	run()
	m.took, m.busy, m.ours = m.took+time.Since(began), m.busy+busyTime(t)-busy, m.ours+m.ownTime()-ours
}

func (m *machine) verdict() string {
	share := max(0, float64(m.busy-m.ours)/float64(m.took)/float64(runtime.NumCPU()))
	verdict := "valid"
	if share > tooBusy {
		verdict = "INVALID: measure again on a quiet machine"
	}
	return fmt.Sprintf("Neighbours took %.0f%% of %d cores while it was measured: %s.", 100*share, runtime.NumCPU(), verdict)
}

// busyTime is the CPU time of all processes together, and what the host took from this machine.
func busyTime(t *testing.T) (total time.Duration) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	for _, i := range []int{1, 2, 3, 8} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += time.Duration(n) * tick
	}
	return total
}

// running is a process, as /proc tells it.
type running struct {
	pid, parent int
	name        string
	command     []byte
	used        time.Duration // by itself and by its children that have ended
}

func processes() (out []running) {
	found, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		head, rest, _ := strings.Cut(string(text), "(")
		name, rest, _ := cutLast(rest, ") ")
		fields := strings.Fields(rest) // state ppid …, the CPU times from the 12th on
		pid, _ := strconv.Atoi(strings.TrimSpace(head))
		p := running{pid: pid, name: name}
		p.parent, _ = strconv.Atoi(fields[1])
		for _, f := range fields[11:15] {
			n, _ := strconv.ParseInt(f, 10, 64)
			p.used += time.Duration(n) * tick
		}
		p.command, _ = os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		out = append(out, p)
	}
	return out
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// below returns a process and all that it started.
func below(all []running, pid int) map[int]bool {
	in := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] {
				in[p.pid], grown = true, true
			}
		}
	}
	return in
}

// ownTime is the CPU time of this test and all that it started.
func (m *machine) ownTime() (total time.Duration) {
	all := processes()
	own := below(all, os.Getpid())
	for _, p := range all {
		if own[p.pid] || bytes.Contains(p.command, []byte(m.root)) {
			total += p.used
		}
	}
	return total
}

// memoryOfOthers is that of the reference: what was started for this test and is none of ours.
func (m *machine) memoryOfOthers(t *testing.T) int {
	t.Helper()
	total := 0
	for _, p := range processes() {
		if bytes.Contains(p.command, []byte(m.root)) && p.name != "sallyport" && p.pid != os.Getpid() {
			total += megabytes(p.pid)
		}
	}
	return total
}

// memoryOfPostgres is that of PostgreSQL's processes, what they share counted once.
func (m *machine) memoryOfPostgres(*testing.T) int {
	all := processes()
	own := below(all, os.Getpid())
	total := 0
	for _, p := range all {
		if own[p.pid] && p.name == "postgres" {
			total += megabytes(p.pid)
		}
	}
	return total
}

// memoryOf is that of the servers on an engine.
func memoryOf(t *testing.T, systems []*system, engine string) int {
	t.Helper()
	var seen []int
	total := 0
	for _, s := range systems {
		if s.name == engine && !slices.Contains(seen, s.pid) {
			seen = append(seen, s.pid)
			total += megabytes(s.pid)
		}
	}
	return total
}

// megabytes is the memory of a process, what it shares divided by how many share it.
func megabytes(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0 // it has just ended
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return kib >> 10 //nolint:mnd // KiB in a MiB
		}
	}
	return 0
}
