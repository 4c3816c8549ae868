package kubetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is one running server.
type process struct {
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it is gone
}

// start runs a program with its output in a file of dir. It ends with this process, however this process ends.
func start(dir, binary string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(binary), exited: make(chan struct{})}
	p.log = filepath.Join(dir, p.name+".log")
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("make log of %s: %w", p.name, err)
	}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	p.cmd.SysProcAttr = sysProcAttr()
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		defer out.Close() //nolint:errcheck // it is a log
		// The kernel sends the parent-death signal when the thread that started the child ends, so this one stays until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the log says why it ended
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// stop asks the program to end, and makes it if it does not within grace.
func (p *process) stop(grace time.Duration) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already: so much the better
	select {
	case <-p.exited:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// signal sends one; a test that stops (SIGSTOP) a server makes it hang.
func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// lastWords are the last lines of the log.
func (p *process) lastWords() string {
	const most = 2000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return p.name + ": " + string(bytes.TrimSpace(text))
}
