package envoy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// child is one running Envoy.
type child struct {
	process *os.Process
	exited  chan struct{} // closed when it is gone
	err     error         // why, once exited is closed; nil for status 0
	log     *logForwarder
}

// start runs Envoy with the configuration (JSON) on file descriptor 3. The goroutine that it leaves ends with Envoy.
func (s *Supervisor) start(configuration []byte) (*child, error) {
	log := newLogForwarder(s.log)
	cmd := exec.Command(s.binary, s.arguments()...) //nolint:gosec,noctx // the operator names the binary; it is drained, not killed, when a context ends
	cmd.Stdout = s.accessLog
	cmd.Stderr = log
	cmd.Env = environment()
	cmd.SysProcAttr = sysProcAttr()
	cmd.WaitDelay = time.Second // for whoever else may hold Envoy's output open
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for Envoy's configuration: %w", err)
	}
	cmd.ExtraFiles = []*os.File{read}

	c := &child{exited: make(chan struct{}), log: log}
	started := make(chan error, 1)
	go func() {
		defer close(c.exited)
		// The kernel sends the parent-death signal when the *thread* that started Envoy ends, so this one stays until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = read.Close() // Envoy has its own
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		log.Flush()
	}()
	if err := <-started; err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("start %s: %w", s.binary, err)
	}
	c.process = cmd.Process
	go feed(write, configuration)
	return c, nil
}

// feed ends when Envoy has read all of it, or is gone.
func feed(w *os.File, configuration []byte) {
	_, _ = w.Write(configuration) // a child that dies before it has read says why on its own
	_ = w.Close()
}

func (s *Supervisor) arguments() []string {
	args := append([]string{"-c", configPath}, quietly...)
	return append(args,
		"--log-level", s.logLevel,
		"--concurrency", strconv.Itoa(s.concurrency),
		"--drain-time-s", strconv.Itoa(max(1, int(s.drainTimeout/time.Second))),
		"--file-flush-interval-msec", "500", // the access log: its default is 10 s, which somebody who watches takes for silence
		"--drain-strategy", "immediate", // ask clients to leave at once: the time is short
	)
}

// configPath is the pipe. Envoy allows this one path under /dev, and reads JSON from a name without a suffix.
const configPath = "/dev/fd/3"

// quietly are flags that every run has: no shared memory segment that a second Envoy could trip over, one line for each
// log entry, in a form that is easy to take apart.
var quietly = []string{"--disable-hot-restart", "--log-format", logFormat, "--log-format-escaped"}

// signal sends one; that Envoy has just gone is no error.
func (c *child) signal(signal os.Signal) error {
	if err := c.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to Envoy (process %d): %w", signal, c.process.Pid, err)
	}
	return nil
}

// waitFor waits for the child to end, for d at most.
func (c *child) waitFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

// environment is all that Envoy gets to see of ours: what is in the rest, passwords of databases perhaps, is not its concern.
func environment() []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

const sigterm = syscall.SIGTERM
