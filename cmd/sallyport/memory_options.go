package main

import (
	"fmt"

	"sallyport/memory"
	"sallyport/memory/limits"
)

// memoryFlags say what a memory offers, wherever it is.
type memoryFlags struct {
	surfaceFlags
	limitFlags
}

// options returns what the flags say, but for the vocabulary.
func (f memoryFlags) options() (memory.Options, error) {
	l := limits.Limits{Records: f.MaxRecords, Bytes: f.MaxBytes, RequestsPerSecond: f.MaxRequestsPerSecond}
	if err := l.Validate(); err != nil {
		return memory.Options{}, fmt.Errorf("--max-records, --max-bytes, --max-requests-per-second: %w", err)
	}
	return memory.Options{Limits: l}, nil
}

// limitFlags bound one namespace; 0 is no limit.
type limitFlags struct {
	MaxRecords           int64   `help:"How many records one namespace may hold: statements, predicates, agents and all of theirs. 0 for no limit." default:"0"`
	MaxBytes             int64   `help:"How many bytes of text one namespace may hold. 0 for no limit." default:"0"`
	MaxRequestsPerSecond float64 `help:"How many requests a second one namespace may make to this process. 0 for no limit." default:"0"`
}
