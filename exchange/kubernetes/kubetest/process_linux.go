package kubetest

import "syscall"

// sysProcAttr ties a server to this process: it is killed when we die. A group of its own keeps Ctrl-C from it.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
