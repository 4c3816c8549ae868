// Package agent is what an agent leaves behind for the process that takes its work up again: working state, turns,
// outputs, pointers and actions; the lease that keeps two processes from doing one agent's work at once; and the
// briefing that a process begins with.
//
// Everything here is a pure function of its arguments. Package memory asks a store for the records and gives it back what
// is to be written.
package agent
