package memory

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/memory/agent"
	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// ResumeArgs are the arguments of agent_resume.
type ResumeArgs struct {
	AgentArgs
	TokenBudget     int    `json:"token_budget"`
	LeaseTTLSeconds int    `json:"lease_ttl_seconds"`
	Holder          string `json:"holder"`
	OutputThreshold int    `json:"output_threshold"`
	DeferLease      bool   `json:"defer_lease"`
}

// Released says whether a lease was given back.
type Released struct {
	Released bool `json:"released"`
}

// Acquired is the answer of agent_acquire.
type Acquired struct {
	Acquired       bool           `json:"acquired"`
	Epoch          int64          `json:"epoch"`
	Briefing       string         `json:"briefing"`
	PendingActions []agent.Action `json:"pending_actions"`
}

// Resume takes an agent's lease, settles what its last process left open, and returns what the next one begins with.
func (s *Service) Resume(ctx context.Context, c Caller, args ResumeArgs) (out agent.Context, err error) {
	if err := checkAgent(c, args.AgentID); err != nil {
		return out, err
	}
	wanted, err := s.wanted(c, args)
	if err != nil {
		return out, err
	}
	return s.entering(ctx, c, args.AgentID, func(w Writer, a access) error {
		if a.session != nil {
			wanted.Rank = a.session.Rank
		} else if wanted.Rank, err = w.NextRank(args.AgentID); err != nil {
			return err
		}
		if !args.DeferLease {
			return s.take(w, a, wanted)
		}
		if a.standing == agent.Holding && a.record.Lease.Live(a.now) {
			return alreadyResumed(args.AgentID)
		}
		return w.PutSession(args.AgentID, wanted)
	})
}

// entering lets fn change how the caller stands to an agent, and returns the briefing that follows. Both are one
// transaction: who is not told of a lease must not have taken it.
func (s *Service) entering(ctx context.Context, c Caller, agentID string, fn func(Writer, access) error) (out agent.Context, err error) {
	var after access
	err = s.writeAnyway(ctx, c, func(w Writer) error {
		before, err := s.look(w, c, agentID)
		if err != nil {
			return err
		}
		if err := fn(w, before); err != nil {
			return err
		}
		if before.session == nil && before.record.Lease.Epoch == 0 { // an agent that nobody has held yet
			if err := s.room(w); err != nil {
				return err
			}
		}
		if after, err = s.look(w, c, agentID); err != nil {
			return err
		}
		out, err = s.brief(w, after)
		return err
	})
	if err == nil && after.standing == agent.Holding {
		s.leases.heard(c.Namespace, after.record, after.expires, after.now)
	}
	return out, err
}

// wanted is the session that the arguments ask for.
func (s *Service) wanted(c Caller, args ResumeArgs) (agent.Session, error) {
	x := agent.Session{
		Owner: c.Owner, Resumed: true, Holder: args.Holder, TTL: agent.DefaultTTL,
		TokenBudget: args.TokenBudget, Threshold: args.OutputThreshold,
	}
	if args.LeaseTTLSeconds != 0 {
		x.TTL = time.Duration(args.LeaseTTLSeconds) * time.Second
		if args.LeaseTTLSeconds < int(agent.MinTTL.Seconds()) || args.LeaseTTLSeconds > int(agent.MaxTTL.Seconds()) {
			return x, refusal.New("lease_ttl_seconds is %d; a lease lasts between %v and %v", args.LeaseTTLSeconds, agent.MinTTL, agent.MaxTTL)
		}
	}
	switch {
	case args.TokenBudget < 0:
		return x, refusal.New("token_budget is %d; it cannot be negative", args.TokenBudget)
	case utf8.RuneCountInString(args.Holder) > agent.MaxHolder:
		return x, refusal.New("holder is longer than %d characters", agent.MaxHolder)
	}
	if args.TokenBudget == 0 {
		x.TokenBudget = agent.DefaultBudget
	}
	if args.OutputThreshold == 0 {
		x.Threshold = agent.DefaultThreshold
	}
	if args.Holder == "" {
		x.Holder = s.holder
	}
	return x, nil
}

// take gives the lease to a session, if it may have it, and settles the actions that were left open.
func (s *Service) take(w Writer, a access, x agent.Session) error {
	l, id := a.record.Lease, a.record.Agent
	var holderRank int64
	if l.Held {
		holder, err := w.Session(id, l.Owner)
		if err != nil {
			return err
		}
		if holder != nil {
			holderRank = holder.Rank
		}
	}
	switch agent.Take(l, x.Owner, x.Rank, holderRank, a.now) {
	case agent.AlreadyResumed:
		return alreadyResumed(id)
	case agent.HeldElsewhere:
		return refusal.New("lease is held: %s works on agent %q until %s unless it goes on", l.Holder, id, l.Expires.Format(time.RFC3339))
	case agent.Granted:
	}
	x.Epoch = l.Epoch + 1
	l = agent.Lease{Epoch: x.Epoch, Owner: x.Owner, Held: true, Holder: x.Holder, TTL: x.TTL, Expires: a.now.Add(x.TTL)}
	if err := w.PutLease(id, l); err != nil {
		return err
	}
	if err := w.PutSession(id, x); err != nil {
		return err
	}
	fenced, err := w.Fenced(id, x.Epoch)
	if err != nil {
		return err
	}
	open, err := w.OpenActions(id)
	if err != nil {
		return err
	}
	for _, settled := range agent.Settle(open, a.now) {
		if err := fenced.PutAction(settled); err != nil {
			return err
		}
	}
	return nil
}

func alreadyResumed(agentID string) error {
	return refusal.New("agent %q is already resumed, and whoever resumed it is still at work; agent_release gives it back", agentID)
}

// Acquire takes the lease after a resume that deferred it. On a session that holds it already it changes nothing.
func (s *Service) Acquire(ctx context.Context, c Caller, args AgentArgs) (out Acquired, err error) {
	if err := checkAgent(c, args.AgentID); err != nil {
		return out, err
	}
	x, err := s.entering(ctx, c, args.AgentID, func(w Writer, a access) error {
		if a.standing == agent.Deferred {
			return s.take(w, a, *a.session)
		}
		return a.mayWrite()
	})
	if err != nil {
		return out, err
	}
	out = Acquired{Acquired: true, Epoch: x.Epoch, Briefing: x.Briefing, PendingActions: x.PendingActions}
	if out.PendingActions == nil {
		out.PendingActions = []agent.Action{}
	}
	return out, nil
}

// Release gives the lease back and ends the session's resume. It is no error if there is nothing to give back, unless
// another session has the agent now.
func (s *Service) Release(ctx context.Context, c Caller, args AgentArgs) (out Released, err error) {
	if err := checkAgent(c, args.AgentID); err != nil {
		return out, err
	}
	err = s.writeAnyway(ctx, c, func(w Writer) error {
		a, err := s.look(w, c, args.AgentID)
		if err != nil || a.standing == agent.NotResumed {
			return err
		}
		if err := a.mayRead(); err != nil {
			return err
		}
		out.Released = a.standing != agent.Lost
		if a.standing == agent.Holding {
			l := a.record.Lease
			l.Epoch, l.Held, l.Expires = l.Epoch+1, false, a.now
			if err := w.PutLease(args.AgentID, l); err != nil {
				return err
			}
		}
		x := *a.session
		x.Resumed = false
		return w.PutSession(args.AgentID, x)
	})
	if out.Released && err == nil {
		s.leases.forget(c.Namespace, args.AgentID)
	}
	return out, err
}

// AgentContext returns what a process begins with, as of now.
func (s *Service) AgentContext(ctx context.Context, c Caller, args AgentArgs) (out agent.Context, err error) {
	err = s.reading(ctx, c, args.AgentID, func(r Reader, a access) (err error) {
		out, err = s.brief(r, a)
		return err
	})
	return out, err
}

// Bounds of what a briefing is made of.
const (
	maxBriefedTurns   = 200
	maxBriefedOutputs = 200
	maxMemories       = 20
)

func (s *Service) brief(r Reader, a access) (agent.Context, error) {
	id := a.record.Agent
	m := agent.Material{Record: a.record, Standing: a.standing}
	var err error
	if m.Actions, err = r.OpenActions(id); err != nil {
		return agent.Context{}, err
	}
	states, err := r.States(id, 1)
	if err != nil {
		return agent.Context{}, err
	}
	if len(states) > 0 {
		m.State = &states[0]
		if m.Memories, err = s.memoriesOf(r, states[0], a.now); err != nil {
			return agent.Context{}, err
		}
	}
	if m.Pointers, err = r.Pointers(id); err != nil {
		return agent.Context{}, err
	}
	if m.Outputs, err = r.Outputs(id, maxBriefedOutputs); err != nil {
		return agent.Context{}, err
	}
	if m.OutputCount, err = r.CountOutputs(id); err != nil {
		return agent.Context{}, err
	}
	if m.Turns, err = r.Turns(id, maxBriefedTurns); err != nil {
		return agent.Context{}, err
	}
	return agent.Brief(m, a.session.TokenBudget), nil
}

// memoriesOf finds what is remembered about what an agent is after: its goal, its focus and the questions that are open.
func (s *Service) memoriesOf(r Reader, st agent.State, now time.Time) ([]belief.Belief, error) {
	text := strings.Join(append([]string{st.Goal, st.Focus}, st.OpenQuestions...), " ")
	words := belief.QueryWords(belief.Words(text))
	found, err := s.believed(r, Filter{Search: &Search{Words: words, Select: true}, Limit: maxMemories}, now)
	return plainAll(found), err
}
