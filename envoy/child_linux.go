package envoy

import "syscall"

// sysProcAttr ties Envoy to this process: it is killed when we die, however we die. A group of its own keeps Ctrl-C in a
// terminal from reaching it before it has drained.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
