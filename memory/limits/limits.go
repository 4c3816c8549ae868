// Package limits is how much one namespace may hold and how often it may ask: the decisions, and the counts of how often.
//
// It counts nothing that is held: a store does, in the transaction that changes it. It refuses nobody: it says what a
// refusal is about, and package memory says it.
package limits

import "fmt"

// Usage is how much is held.
type Usage struct {
	Records int64 // statements and retractions, predicates, agents, and all of their records
	Bytes   int64 // of the texts in them; indexes and what is derived from them come on top
}

// Limits are what one namespace may have. Zero members limit nothing.
type Limits struct {
	Records           int64
	Bytes             int64
	RequestsPerSecond float64 // to one process
}

// Validate refuses limits that cannot be meant.
func (l Limits) Validate() error {
	switch {
	case l.Records < 0:
		return fmt.Errorf("at most %d records: give a number above 0, or 0 for no limit", l.Records)
	case l.Bytes < 0:
		return fmt.Errorf("at most %d bytes: give a number above 0, or 0 for no limit", l.Bytes)
	case !(l.RequestsPerSecond >= 0 && l.RequestsPerSecond <= maxRate):
		return fmt.Errorf("at most %g requests a second: give a number from 0, which is no limit, to %d", l.RequestsPerSecond, maxRate)
	}
	return nil
}

// Over says which limit a namespace would pass that holds some and adds some; the name is empty if none. What makes it
// no larger passes however full it is.
func (l Limits) Over(held, added Usage) (name string, limit int64) {
	switch {
	case l.Records > 0 && added.Records > 0 && held.Records+added.Records > l.Records:
		return "records", l.Records
	case l.Bytes > 0 && added.Bytes > 0 && held.Bytes+added.Bytes > l.Bytes:
		return "bytes", l.Bytes
	}
	return "", 0
}
