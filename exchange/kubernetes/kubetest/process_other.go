//go:build !linux

package kubetest

import "syscall"

// sysProcAttr gives a server a group of its own. Outside Linux nothing ends it when this process is killed with SIGKILL.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
