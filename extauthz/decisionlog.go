package extauthz

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// The lines a second that are logged unless LogRates say otherwise.
const (
	DefaultLogAllows  = 0  // Envoy's access log has every request; a sample here is for looking closely
	DefaultLogDenials = 10 // of each reason, so that a flood of one hides none of another
)

// LogRates are how many lines a second are written at most. 0 writes none.
type LogRates struct {
	Allows  int
	Denials int // of each reason
}

// Asked is what is logged of the request that a decision is about. What is not known stays empty.
type Asked struct {
	Method    string
	Path      string // as it came: the log cuts the query off
	RequestID string // as it came: the log leaves out what may be a token
	Took      time.Duration
}

// DecisionLog writes decisions, a line each: denials, and a sample of the allows. Each line says as "unlogged" how many
// decisions like it went unlogged since the last one, so that the sample can be scaled. Nothing that a caller presented as
// a credential is in it.
//
// On an allow that is not logged it takes no lock and allocates nothing.
type DecisionLog struct {
	log     *slog.Logger
	now     func() time.Time
	traceID func(ctx context.Context) string
	allows  quota
	denials map[Reason]*quota // filled when it is made, and never changed: no lock is needed
	other   quota             // for reasons that are not in denials
}

// NewDecisionLog returns a DecisionLog. traceID says which trace a request belongs to, "" if none; nil never knows.
func NewDecisionLog(log *slog.Logger, rates LogRates, now func() time.Time, traceID func(ctx context.Context) string) (*DecisionLog, error) {
	if traceID == nil {
		traceID = func(context.Context) string { return "" }
	}
	l := &DecisionLog{log: log, now: now, traceID: traceID, denials: map[Reason]*quota{}}
	for _, reason := range reasons {
		l.denials[reason] = &quota{}
	}
	return l, l.SetRates(rates)
}

// SetRates changes how much is logged from now on.
func (l *DecisionLog) SetRates(r LogRates) error {
	for name, rate := range map[string]int{"allows": r.Allows, "denials": r.Denials} {
		if rate < 0 || rate > maxLogRate {
			return fmt.Errorf("%d %s a second in the log: give 0 to %d", rate, name, maxLogRate)
		}
	}
	l.allows.rate.Store(uint32(r.Allows))
	for _, q := range l.denials {
		q.rate.Store(uint32(r.Denials))
	}
	l.other.rate.Store(uint32(r.Denials))
	return nil
}

// maxLogRate is more than anybody reads.
const maxLogRate = 1_000_000

// Rates returns the rates in force.
func (l *DecisionLog) Rates() LogRates {
	return LogRates{Allows: int(l.allows.rate.Load()), Denials: int(l.other.rate.Load())}
}

// Wants says whether Write must be called for d. It counts, so ask once for each decision.
func (l *DecisionLog) Wants(d Decision) bool { return l.quotaOf(d).take(l.now) }

func (l *DecisionLog) quotaOf(d Decision) *quota {
	if d.Allowed() {
		return &l.allows
	}
	if q := l.denials[d.Reason]; q != nil {
		return q
	}
	return &l.other
}

// Write writes the line about a decision that Wants has asked for.
func (l *DecisionLog) Write(ctx context.Context, d Decision, a Asked) {
	level := slog.LevelInfo
	if d.Reason == ReasonUnavailable {
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		if v := f.of(d, a); v != "" {
			attrs = append(attrs, slog.String(f.name, v))
		}
	}
	if id := l.traceID(ctx); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if d.Denial != nil {
		attrs = append(attrs, slog.Int("status", d.Denial.Status))
		if d.Denial.Cause != nil {
			attrs = append(attrs, slog.String("cause", d.Denial.Cause.Error()))
		}
	}
	if a.Took > 0 {
		attrs = append(attrs, slog.Int64("took_us", a.Took.Microseconds()))
	}
	attrs = append(attrs, slog.Uint64("unlogged", l.quotaOf(d).unlogged.Swap(0)))
	l.log.LogAttrs(ctx, level, "decision", attrs...)
}

// fields are the texts of a line, in their order. Empty ones are left out.
var fields = []struct {
	name string
	of   func(d Decision, a Asked) string
}{
	{"decision", func(d Decision, _ Asked) string {
		if d.Allowed() {
			return "allowed"
		}
		return "denied"
	}},
	{"reason", func(d Decision, _ Asked) string { return string(d.Reason) }},
	{"namespace", func(d Decision, _ Asked) string { return d.Identity.Namespace }},
	{"tenant", func(d Decision, _ Asked) string { return d.Identity.Tenant }},
	{"agent", func(d Decision, _ Asked) string { return d.Identity.Agent }},
	{"session", func(d Decision, _ Asked) string { return d.Identity.Session }},
	{"key_id", func(d Decision, _ Asked) string { return d.Identity.KeyID }},
	{"method", func(_ Decision, a Asked) string { return loggedMethod(a.Method) }},
	{"path", func(_ Decision, a Asked) string { return loggedPath(a.Path) }},
	{"request_id", func(_ Decision, a Asked) string { return loggedID(a.RequestID) }},
}

// quota lets a number of events through in each second and counts the others. The second and what was used of it are in
// one word, so that a flood on many cores neither waits for a lock nor gets more than its number.
type quota struct {
	rate     atomic.Uint32
	state    atomic.Uint64 // the second above, its events that went through below
	unlogged atomic.Uint64 // events since the last that was written
}

func (q *quota) take(now func() time.Time) bool {
	rate := q.rate.Load()
	if rate == 0 {
		return false
	}
	second := uint64(now().Unix()) & halfWord
	for {
		old := q.state.Load()
		used := old & halfWord
		if old>>halfBits != second {
			used = 0
		}
		if used >= uint64(rate) {
			q.unlogged.Add(1)
			return false
		}
		if q.state.CompareAndSwap(old, second<<halfBits|(used+1)) {
			return true
		}
	}
}

const (
	halfBits = 32
	halfWord = 1<<halfBits - 1
)
