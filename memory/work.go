package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/memory/agent"
	"sallyport/memory/refusal"
)

// How many records a listing returns when the caller does not say, and at most.
const (
	defaultListed = 20
	maxTurns      = 200
	maxStates     = 1000
)

func listed(limit, most int) int {
	if limit <= 0 {
		return defaultListed
	}
	return min(limit, most)
}

// UpdateState changes an agent's working state. Members other than agent_id are those of agent.ParsePatch.
func (s *Service) UpdateState(ctx context.Context, c Caller, agentID string, members map[string]json.RawMessage) (agent.State, error) {
	p, err := agent.ParsePatch(members)
	if err != nil {
		return agent.State{}, err
	}
	return s.patch(ctx, c, agentID, p)
}

func (s *Service) patch(ctx context.Context, c Caller, agentID string, p agent.Patch) (out agent.State, err error) {
	err = s.writes(ctx, c, agentID, func(w writing) error {
		states, err := w.States(agentID, 1)
		if err != nil {
			return err
		}
		var last agent.State
		if len(states) > 0 {
			last = states[0]
		}
		out = last.Next(p, w.record.TurnSeq, w.record.ActionSeq, w.now)
		return w.agent.PutState(out)
	})
	return out, err
}

// MilestoneArgs are the arguments of agent_milestone.
type MilestoneArgs struct {
	AgentArgs
	Name     string  `json:"name"`
	Progress *string `json:"progress"`
}

// Milestone notes in the working state that something was reached.
func (s *Service) Milestone(ctx context.Context, c Caller, args MilestoneArgs) (agent.State, error) {
	if args.Name = strings.TrimSpace(args.Name); args.Name == "" {
		return agent.State{}, refusal.New("name is missing: say what was reached")
	}
	p := agent.Patch{Milestone: &args.Name}
	if progress := strings.TrimSpace(deref(args.Progress)); args.Progress != nil {
		p.Progress = &progress
	}
	return s.patch(ctx, c, args.AgentID, p)
}

// ListArgs are the arguments of the listings.
type ListArgs struct {
	AgentArgs
	Limit int `json:"limit"`
}

// StateHistory returns the versions of the working state, newest first.
func (s *Service) StateHistory(ctx context.Context, c Caller, args ListArgs) ([]agent.State, error) {
	out := []agent.State{}
	err := s.reading(ctx, c, args.AgentID, func(r Reader, _ access) error {
		states, err := r.States(args.AgentID, listed(args.Limit, maxStates))
		out = append(out, states...)
		return err
	})
	return out, err
}

// TurnArgs are the arguments of record_turn.
type TurnArgs struct {
	AgentArgs
	Role      string `json:"role"`
	Content   string `json:"content"`
	Name      string `json:"name"`
	MessageID string `json:"message_id"`
	Brief     string `json:"brief"`
}

// RecordTurn keeps one message. A long one is stored as an output, and the turn keeps its opening.
func (s *Service) RecordTurn(ctx context.Context, c Caller, args TurnArgs) (out agent.Turn, err error) {
	args.Role, args.Name, args.MessageID = strings.TrimSpace(args.Role), strings.TrimSpace(args.Name), strings.TrimSpace(args.MessageID)
	if err := agent.CheckRole(args.Role); err != nil {
		return out, err
	}
	if len(args.MessageID) > agent.MaxMessageID {
		return out, refusal.New("message_id has %d bytes; at most %d are allowed", len(args.MessageID), agent.MaxMessageID)
	}
	if len(args.Brief) > agent.MaxBrief {
		return out, refusal.New("brief has %d bytes; at most %d are allowed", len(args.Brief), agent.MaxBrief)
	}
	err = s.writes(ctx, c, args.AgentID, func(w writing) error {
		if err := checkContent(args.Content); err != nil { // only here: who may not write is told that first
			return err
		}
		out = agent.Turn{
			Seq: w.record.TurnSeq + 1, Role: args.Role, Content: args.Content, Name: args.Name, MessageID: args.MessageID,
			Brief: args.Brief, At: w.now,
		}
		if agent.TooLong(args.Content, w.session.Threshold) {
			ref, err := w.freeRef(out.Seq)
			if err != nil {
				return err
			}
			if _, err := w.store(ref, args.Name, "", args.Content); err != nil {
				return err
			}
			out.OutputRef, out.Content = ref, agent.Opening(args.Content, ref)
		}
		return w.agent.PutTurn(out)
	})
	return out, err
}

// RecentTurns returns the newest turns, oldest first.
func (s *Service) RecentTurns(ctx context.Context, c Caller, args ListArgs) ([]agent.Turn, error) {
	out := []agent.Turn{}
	err := s.reading(ctx, c, args.AgentID, func(r Reader, _ access) error {
		turns, err := r.Turns(args.AgentID, listed(args.Limit, maxTurns))
		slices.Reverse(turns)
		out = append(out, turns...)
		return err
	})
	return out, err
}

// OutputArgs are the arguments of store_output.
type OutputArgs struct {
	AgentArgs
	Content string `json:"content"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	Ref     string `json:"ref"`
}

// StoreOutput keeps a text under a ref, in the place of what was kept there before.
func (s *Service) StoreOutput(ctx context.Context, c Caller, args OutputArgs) (out agent.Output, err error) {
	err = s.writes(ctx, c, args.AgentID, func(w writing) error {
		if err := checkContent(args.Content); err != nil {
			return err
		}
		ref := strings.TrimSpace(args.Ref)
		if ref == "" {
			ref, err = w.freeRef(w.record.TurnSeq + 1) // the turn that is being worked on
		} else {
			err = agent.CheckID("ref", ref)
		}
		if err != nil {
			return err
		}
		out, err = w.store(ref, args.Tool, args.Summary, args.Content)
		return err
	})
	return out, err
}

func checkContent(content string) error {
	if len(content) > agent.MaxContent {
		return refusal.New("content has %d bytes; at most %d are allowed", len(content), agent.MaxContent)
	}
	return nil
}

// freeRef makes up a ref that nothing is kept under, named for a turn.
func (w writing) freeRef(turn int64) (string, error) {
	for {
		n, err := w.agent.NextOutput()
		if err != nil {
			return "", err
		}
		ref := fmt.Sprintf("out-%d-%d", turn, n)
		if _, taken, err := w.Output(w.record.Agent, ref); err != nil || !taken {
			return ref, err
		}
	}
}

func (w writing) store(ref, tool, summary, content string) (agent.Output, error) {
	if summary = strings.TrimSpace(summary); summary == "" {
		summary = agent.Summarize(content)
	}
	o := agent.Output{Ref: ref, Tool: tool, Summary: summary, Tokens: agent.Tokens(content), At: w.now}
	return o, w.agent.PutOutput(o, content)
}

// RefArgs are the arguments of fetch_output.
type RefArgs struct {
	AgentArgs
	Ref string `json:"ref"`
}

// FetchOutput returns a stored text.
func (s *Service) FetchOutput(ctx context.Context, c Caller, args RefArgs) (out agent.Fetched, err error) {
	err = s.reading(ctx, c, args.AgentID, func(r Reader, _ access) error {
		var ok bool
		if out, ok, err = r.Output(args.AgentID, strings.TrimSpace(args.Ref)); err != nil || ok {
			return err
		}
		return refusal.New("agent %q has no output %q", args.AgentID, args.Ref)
	})
	return out, err
}

// PointerArgs are the arguments of set_pointer.
type PointerArgs struct {
	AgentArgs
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Fields map[string]string `json:"fields"`
	Note   string            `json:"note"`
}

// SetPointer keeps where a piece of the work lies.
func (s *Service) SetPointer(ctx context.Context, c Caller, args PointerArgs) (out agent.Pointer, err error) {
	out = agent.Pointer{Name: strings.TrimSpace(args.Name), Type: args.Type, Fields: map[string]string{}, Note: args.Note}
	for name, value := range args.Fields {
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); name != "" && value != "" {
			out.Fields[name] = value
		}
	}
	if err := agent.CheckPointer(out); err != nil {
		return out, err
	}
	err = s.writes(ctx, c, args.AgentID, func(w writing) error {
		out.At = w.now
		return w.agent.PutPointer(out)
	})
	return out, err
}

// NameArgs are the arguments of remove_pointer.
type NameArgs struct {
	AgentArgs
	Name string `json:"name"`
}

// Removed names what is gone.
type Removed struct {
	Removed string `json:"removed"`
}

// RemovePointer takes a pointer away; it is no error if there is none of that name.
func (s *Service) RemovePointer(ctx context.Context, c Caller, args NameArgs) (Removed, error) {
	err := s.writes(ctx, c, args.AgentID, func(w writing) error { return w.agent.RemovePointer(strings.TrimSpace(args.Name)) })
	return Removed{args.Name}, err
}

// ListPointers returns the pointers by name.
func (s *Service) ListPointers(ctx context.Context, c Caller, args AgentArgs) ([]agent.Pointer, error) {
	out := []agent.Pointer{}
	err := s.reading(ctx, c, args.AgentID, func(r Reader, _ access) error {
		pointers, err := r.Pointers(args.AgentID)
		out = append(out, pointers...)
		return err
	})
	return out, err
}
