//go:build !linux

package envoy

import "syscall"

// sysProcAttr gives Envoy a group of its own, so that Ctrl-C in a terminal does not reach it before it has drained. Outside
// Linux nothing ends Envoy when this process is killed with SIGKILL.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
