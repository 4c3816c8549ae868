package agent

import "time"

// Class is what making a tool call a second time would do.
type Class string

// The classes.
const (
	Pure       Class = "pure"       // nothing: it only reads
	Idempotent Class = "idempotent" // nothing more, when the same key goes with it
	External   Class = "external"   // it could happen twice
)

// Status is how far an action is.
type Status string

// The statuses. An action is open while it is started or unknown.
const (
	Started   Status = "started"
	Done      Status = "done"
	Failed    Status = "failed"
	Abandoned Status = "abandoned"
	Unknown   Status = "unknown"
)

// Open says whether the action still has to be settled.
func (a Action) Open() bool { return a.Status == Started || a.Status == Unknown }

// End closes the action, or leaves it open when the status is Unknown. Result and error are those of the last end; a
// resolution stays until there is another one.
func (a Action) End(status Status, result, resultRef, errorText, resolution string, now time.Time) Action {
	a.Status = status
	a.Result, a.ResultRef, a.Error = result, resultRef, errorText
	if resolution != "" {
		a.Resolution = resolution
	}
	if !a.Open() {
		a.EndedAt = &now
	}
	return a
}

// Why an action that a process left open was settled. The second one is part of the Memory API.
const (
	pureResolution     = "interrupted; it only reads, so it can simply be made again"
	externalResolution = "interrupted; no resolver to check whether it happened"
)

// Settle returns the actions that change when a process takes over from one that left them open: what only reads is
// abandoned, what could happen twice is no longer known, and what is idempotent waits to be repeated with its key.
func Settle(open []Action, now time.Time) []Action {
	var changed []Action
	for _, a := range open {
		switch {
		case a.Class == Pure:
			changed = append(changed, a.End(Abandoned, "", "", "", pureResolution, now))
		case a.Class == External && a.Status == Started:
			changed = append(changed, a.End(Unknown, "", "", "", externalResolution, now))
		}
	}
	return changed
}
