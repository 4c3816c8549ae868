package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fleet is every process that the benchmark runs, the benchmark itself included.
type fleet struct {
	mu    sync.Mutex
	alive map[*process]struct{}
	ended time.Duration // CPU of those that are gone
}

// process is one of them.
type process struct {
	fleet  *fleet
	cmd    *exec.Cmd
	output *tail
	done   chan struct{} // closed when it is gone
	cancel context.CancelFunc
}

const endTimeout = 5 * time.Second // between SIGTERM and SIGKILL

// start runs a program until stop, or until ctx ends.
func (f *fleet) start(ctx context.Context, program string, args ...string) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &process{fleet: f, cmd: exec.CommandContext(ctx, program, args...), output: &tail{}, done: make(chan struct{}), cancel: cancel} //nolint:gosec // what is measured
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = endTimeout
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SALLYPORT_") { // settings of the person who measures
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	f.mu.Lock()
	if f.alive == nil {
		f.alive = map[*process]struct{}{}
	}
	f.alive[p] = struct{}{}
	f.mu.Unlock()
	go p.wait()
	return p, nil
}

// startSelf runs this program as one of its own servers, on a socket, and waits until it serves.
func (f *fleet) startSelf(ctx context.Context, as, socket string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p, err := f.start(ctx, self, as, socket)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, func(ctx context.Context) error { return listening(ctx, socket) })
}

func (p *process) wait() {
	_ = p.cmd.Wait() // ProcessState tells
	p.fleet.mu.Lock()
	delete(p.fleet.alive, p)
	p.fleet.ended += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	p.fleet.mu.Unlock()
	close(p.done)
}

// stop ends the process and waits until it is gone.
func (p *process) stop() {
	if p == nil {
		return
	}
	p.cancel()
	<-p.done
}

// cpu is what the fleet has used so far.
func (f *fleet) cpu() (time.Duration, error) {
	total, err := cpuOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.alive {
		used, err := p.cpu()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total + f.ended, nil
}

func (p *process) cpu() (time.Duration, error) {
	used, err := cpuOf(p.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("%w; it said: %s", err, p.output)
	}
	return used, nil
}

// cpuOf is what a process has used, in user and system mode. The scheduler's own count of each thread is exact to the
// nanosecond, where /proc/PID/stat counts in ticks of 10 ms.
func cpuOf(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("read the CPU time of process %d: it is gone, or this is not Linux", pid)
	}
	var total int64
	for _, task := range tasks {
		text, err := os.ReadFile(task) //nolint:gosec // of our own making
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that has just ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, parseErr := strconv.ParseInt(first, 10, 64)
		if err := errors.Join(err, parseErr); err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		total += ns
	}
	return time.Duration(total), nil
}

// held is the memory that a process holds, in bytes.
type held struct {
	resident  float64 // all of it
	anonymous float64 // without the pages of its program, which the kernel can drop and read again
}

const mib = 1 << 20

func (p *process) memory() (held, error) {
	path := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	text, err := os.ReadFile(path) //nolint:gosec // of our own making
	if err != nil {
		return held{}, fmt.Errorf("read memory: %w", err)
	}
	var h held
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		field := map[string]*float64{"VmRSS": &h.resident, "RssAnon": &h.anonymous}[name]
		if field == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return held{}, fmt.Errorf("read memory: %w", err)
		}
		*field = kib * (mib >> 10)
	}
	return h, nil
}

// tail keeps the end of what a process says, to explain a failure.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

// Write keeps the end.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// await waits until a process is ready, which it must be within a bound.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	const bound, pause = 20 * time.Second, 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended; it said: %s", p.cmd.Path, p.output)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; it said: %s", p.cmd.Path, err, p.output)
		case <-time.After(pause):
		}
	}
}

// stopAll ends every process that is left.
func (f *fleet) stopAll() {
	f.mu.Lock()
	left := slices.Collect(maps.Keys(f.alive))
	f.mu.Unlock()
	for _, p := range left {
		p.stop()
	}
}
