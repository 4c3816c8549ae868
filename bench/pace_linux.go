package main

import (
	"syscall"
	"time"
)

// sleepUntil sleeps by the kernel's clock: Go's own timers may be a millisecond late, and then requests come in heaps.
func sleepUntil(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		ts := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&ts, nil) // a signal ends it early, and then it is done again
	}
}
