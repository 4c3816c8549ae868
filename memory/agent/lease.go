package agent

import "time"

// The bounds of a lease, and what it is when the caller names nothing.
const (
	DefaultTTL = time.Minute
	MinTTL     = 5 * time.Second
	MaxTTL     = time.Hour
)

// Owner is the session that a lease belongs to: the pod that the caller's key names, and within it the MCP session, if
// the client names one. Both may be empty.
type Owner struct {
	Pod        string
	Connection string
}

// Lease is the right to do an agent's work. Its epoch grows with every change of hands; what was begun under an older
// epoch cannot write any more.
type Lease struct {
	Epoch   int64
	Owner   Owner
	Held    bool // false once released
	Holder  string
	TTL     time.Duration
	Expires time.Time
}

// Live says whether the lease keeps others away. One that has run out is still its owner's until somebody takes it.
func (l Lease) Live(now time.Time) bool { return l.Held && now.Before(l.Expires) }

// Session is what is kept of an owner's resume of an agent.
type Session struct {
	Owner       Owner
	Resumed     bool  // false once it released the agent; its rank stays
	Epoch       int64 // of the lease it was given; 0 when it was deferred
	Rank        int64 // grows with each owner that first resumed the agent, so the newer one has the larger
	Holder      string
	TTL         time.Duration
	TokenBudget int
	Threshold   int // in tokens; negative never stores a text apart
}

// Standing is where a session stands to the lease.
type Standing int

// The standings.
const (
	NotResumed Standing = iota
	Deferred            // it resumed without taking the lease
	Holding
	Lost // it held the lease, which has changed hands since
)

// Stand says where a session, nil if there is none, stands to the agent's lease.
func Stand(s *Session, l Lease) Standing {
	switch {
	case s == nil || !s.Resumed:
		return NotResumed
	case s.Epoch == 0:
		return Deferred
	case l.Held && s.Epoch == l.Epoch && s.Owner == l.Owner:
		return Holding
	}
	return Lost
}

// Verdict is the answer to a session that wants the lease.
type Verdict int

// The verdicts.
const (
	Granted        Verdict = iota
	AlreadyResumed         // by the same session, or by a pod that a key without a session cannot put aside
	HeldElsewhere
)

// Take decides whether the owner may have the lease at now. A lease that is free or has run out is anyone's. A live one
// goes to a newer pod at once, because its predecessor is on its way out; but not back to the older one, or the two
// would take it from each other for ever. Ranks are those of the sessions; holderRank is 0 when it is not known.
func Take(l Lease, me Owner, myRank, holderRank int64, now time.Time) Verdict {
	switch {
	case !l.Live(now):
		return Granted
	case l.Owner == me:
		return AlreadyResumed
	case l.Owner.Pod == me.Pod:
		return HeldElsewhere
	case me.Pod == "":
		return AlreadyResumed
	case myRank > holderRank:
		return Granted
	}
	return HeldElsewhere
}
