// Package refusal is how the memory says no: one sentence for the caller and the kind of mistake it answers.
//
// It knows no HTTP: package api turns a kind into a status and a code. An error that is not an Error of this package is a fault of the
// server, and its words never reach a caller.
package refusal

import (
	"errors"
	"fmt"
	"time"
)

// Kind sorts refusals by whose mistake it was and how it has to be told.
type Kind int

// The kinds.
const (
	Operation Kind = iota // the arguments have the right shape but the operation cannot be done
	Argument              // the arguments do not have the declared shape
	Mismatch              // the arguments name data that the caller's key does not reach
	Full                  // the namespace may hold no more
	TooOften              // the namespace asks more often than it may
)

// Error is a refusal, which may be shown to the caller.
type Error struct {
	Kind  Kind
	Text  string
	After time.Duration // when to ask again; of TooOften only
}

// Error returns the sentence for the caller.
func (r *Error) Error() string { return r.Text }

// New refuses an operation.
func New(format string, args ...any) error {
	return &Error{Kind: Operation, Text: fmt.Sprintf(format, args...)}
}

// Shape refuses arguments that do not have the declared shape.
func Shape(format string, args ...any) error {
	return &Error{Kind: Argument, Text: fmt.Sprintf(format, args...)}
}

// Reach refuses arguments that name what the caller's key does not reach. Clients look for the code at the start.
func Reach(format string, args ...any) error {
	return &Error{Kind: Mismatch, Text: "namespace_mismatch: " + fmt.Sprintf(format, args...)}
}

// NoRoom refuses to keep more. Clients that see the text alone find the code at the start.
func NoRoom(format string, args ...any) error {
	return &Error{Kind: Full, Text: "limit_exceeded: " + fmt.Sprintf(format, args...)}
}

// Wait refuses a request that comes too soon.
func Wait(after time.Duration, format string, args ...any) error {
	return &Error{Kind: TooOften, Text: fmt.Sprintf(format, args...), After: after}
}

// As returns the refusal in err's chain, or nil if err is a fault.
func As(err error) *Error {
	var r *Error
	if errors.As(err, &r) {
		return r
	}
	return nil
}
