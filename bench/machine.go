package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tooBusy is the share of the machine that neighbours may take before figures mean nothing.
const tooBusy = 0.25

// machine watches how much of the CPU is taken, and by whom.
type machine struct {
	fleet *fleet
	spans []span
}

// span is a stretch of time in which something was measured.
type span struct {
	took       time.Duration
	busy, ours time.Duration // CPU of everybody, and of the fleet
}

// reading is the state at one moment.
type reading struct {
	at         time.Time
	busy, ours time.Duration
}

func (m *machine) read() (reading, error) {
	busy, err := busyTime()
	if err != nil {
		return reading{}, err
	}
	ours, err := m.fleet.cpu()
	return reading{at: time.Now(), busy: busy, ours: ours}, err
}

// since returns what happened from a moment to now.
func (m *machine) since(r reading) (span, error) {
	now, err := m.read()
	return span{took: now.at.Sub(r.at), busy: now.busy - r.busy, ours: now.ours - r.ours}, err
}

// add keeps a span in which something was measured.
func (m *machine) add(s span) { m.spans = append(m.spans, s) }

// total is all spans together.
func (m *machine) total() span {
	var t span
	for _, s := range m.spans {
		t.took, t.busy, t.ours = t.took+s.took, t.busy+s.busy, t.ours+s.ours
	}
	return t
}

// neighbours is the share of the machine that others took, from 0 to 1.
func (s span) neighbours() float64 {
	if s.took <= 0 {
		return 0
	}
	return min(1, max(0, float64(s.busy-s.ours)/float64(s.took)/float64(runtime.NumCPU()))) // ticks are coarse
}

// busyTime is the CPU time of all processes together, that which the host took from a virtual machine included. Interrupts
// are left out: they are mostly our own packets.
func busyTime() (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ, which Linux never changes
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read how busy the machine is: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	const user, nice, system, steal = 1, 2, 3, 8
	var total time.Duration
	for _, i := range []int{user, nice, system, steal} {
		if i >= len(fields) {
			return 0, fmt.Errorf("/proc/stat begins with %q", line)
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read how busy the machine is: %w", err)
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}

// loadAverage is the load of the last one, five and fifteen minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
