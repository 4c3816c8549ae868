package memory

import (
	"context"
	"errors"
	"time"

	"sallyport/memory/agent"
	"sallyport/memory/refusal"
)

// AgentArgs name an agent, as every agent tool's arguments do.
type AgentArgs struct {
	AgentID string `json:"agent_id"`
}

// access is what a call on an agent knows of it.
type access struct {
	caller   Caller
	record   agent.Record
	session  *agent.Session
	standing agent.Standing
	expires  time.Time // of the lease, as the store has it; the record's may be later
	now      time.Time
}

// writing is a call that may write.
type writing struct {
	access
	Writer
	agent AgentWriter
}

// checkAgent refuses an agent that the caller's key does not reach, and what is no agent's id.
func checkAgent(c Caller, agentID string) error {
	if err := agent.CheckID("agent_id", agentID); err != nil {
		return err
	}
	if c.Agent != "" && agentID != c.Agent {
		return refusal.Reach("this key is for agent %q; it cannot name agent %q", c.Agent, agentID)
	}
	return nil
}

// look finds out how the caller stands to an agent.
func (s *Service) look(r Reader, c Caller, agentID string) (access, error) {
	a := access{caller: c, now: s.clock()}
	var err error
	if a.record, err = r.Agent(agentID); err != nil {
		return a, err
	}
	a.expires = a.record.Lease.Expires
	a.record.Lease.Expires = s.leases.end(c.Namespace, a.record)
	if a.session, err = r.Session(agentID, c.Owner); err != nil {
		return a, err
	}
	a.standing = agent.Stand(a.session, a.record.Lease)
	return a, nil
}

// reading calls fn for a session that has resumed the agent and was not put aside since.
func (s *Service) reading(ctx context.Context, c Caller, agentID string, fn func(Reader, access) error) error {
	if err := checkAgent(c, agentID); err != nil {
		return err
	}
	var held access
	err := s.read(ctx, c, func(r Reader) error {
		a, err := s.look(r, c, agentID)
		if err != nil {
			return err
		}
		if err := a.mayRead(); err != nil {
			return err
		}
		held = a
		return fn(r, a)
	})
	if err == nil && held.standing == agent.Holding {
		s.leases.heard(c.Namespace, held.record, held.expires, held.now)
	}
	return err
}

// writes calls fn for a session that holds the agent's lease. The store checks the epoch in the same transaction.
func (s *Service) writes(ctx context.Context, c Caller, agentID string, fn func(writing) error) error {
	return s.writesBy(ctx, s.write, c, agentID, fn)
}

// writesBy is writes by s.write or s.writeAnyway.
func (s *Service) writesBy(ctx context.Context, write func(context.Context, Caller, func(Writer) error) error, c Caller, agentID string, fn func(writing) error) error {
	if err := checkAgent(c, agentID); err != nil {
		return err
	}
	var held access
	err := write(ctx, c, func(w Writer) error {
		a, err := s.look(w, c, agentID)
		if err != nil {
			return err
		}
		if err := a.mayWrite(); err != nil {
			return err
		}
		fenced, err := w.Fenced(agentID, a.session.Epoch)
		if err != nil {
			return err
		}
		if err := fn(writing{access: a, Writer: w, agent: fenced}); err != nil {
			return err
		}
		a.expires = a.now.Add(a.record.Lease.TTL)
		held = a
		return fenced.Extend(a.expires)
	})
	if errors.Is(err, ErrStaleEpoch) {
		return lost(agentID)
	}
	if err == nil {
		s.leases.heard(c.Namespace, held.record, held.expires, held.now)
	}
	return err
}

func (a access) mayRead() error {
	switch a.standing {
	case agent.NotResumed:
		return notResumed(a.record.Agent)
	case agent.Lost:
		if a.record.Lease.Live(a.now) {
			return lost(a.record.Agent)
		}
	case agent.Deferred, agent.Holding:
	}
	return nil
}

func (a access) mayWrite() error {
	switch a.standing {
	case agent.NotResumed:
		return notResumed(a.record.Agent)
	case agent.Lost:
		return lost(a.record.Agent)
	case agent.Deferred:
		return refusal.New("lease not acquired: agent %q was resumed without its lease, so it can only be read; agent_acquire takes the lease", a.record.Agent)
	case agent.Holding:
	}
	return nil
}

func notResumed(agentID string) error {
	return refusal.New("agent %q is not resumed in this session: call agent_resume first", agentID)
}

func lost(agentID string) error {
	return refusal.New("lease was lost: another session has taken agent %q over since this one resumed it; stop, or call agent_resume again", agentID)
}
