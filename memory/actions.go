package memory

import (
	"context"
	"fmt"
	"strings"

	"sallyport/memory/agent"
	"sallyport/memory/refusal"
)

// BeginArgs are the arguments of begin_action.
type BeginArgs struct {
	AgentArgs
	Tool  string      `json:"tool"`
	Class agent.Class `json:"class"`
	Args  string      `json:"args"`
}

// BeginAction records a tool call before it is made.
func (s *Service) BeginAction(ctx context.Context, c Caller, args BeginArgs) (out agent.Action, err error) {
	args.Tool = strings.TrimSpace(args.Tool)
	if args.Tool == "" || len(args.Tool) > agent.MaxTool {
		return out, refusal.New("tool has %d bytes; it needs 1 to %d", len(args.Tool), agent.MaxTool)
	}
	if err := agent.CheckClass(args.Class); err != nil {
		return out, err
	}
	err = s.writes(ctx, c, args.AgentID, func(w writing) error {
		if err := checkContent(args.Args); err != nil {
			return err
		}
		const keyBytes = 16
		out = agent.Action{
			Seq: w.record.ActionSeq + 1, Tool: args.Tool, Class: args.Class, Key: randomHex(keyBytes), Status: agent.Started,
			Epoch: w.record.Lease.Epoch, StartedAt: w.now,
		}
		if out.Args, out.ArgsRef, err = w.spill(args.Args, args.Tool, fmt.Sprintf("act-%d-args", out.Seq)); err != nil {
			return err
		}
		return w.agent.PutAction(out)
	})
	return out, err
}

// spill stores a text apart when it is long, and returns what stands in its place.
func (w writing) spill(text, tool, ref string) (kept, usedRef string, err error) {
	if !agent.TooLong(text, w.session.Threshold) {
		return text, "", nil
	}
	_, err = w.store(ref, tool, "", text)
	return agent.Opening(text, ref), ref, err
}

// EndArgs are the arguments of end_action.
type EndArgs struct {
	AgentArgs
	Seq        *int64       `json:"seq"`
	Status     agent.Status `json:"status"`
	Result     string       `json:"result"`
	Error      string       `json:"error"`
	Resolution string       `json:"resolution"`
}

// EndAction closes an open action, or notes that nobody knows whether it happened.
func (s *Service) EndAction(ctx context.Context, c Caller, args EndArgs) (out agent.Action, err error) {
	if err := agent.CheckEnd(args.Status); err != nil {
		return out, err
	}
	write := s.write
	if args.Result == "" && args.Error == "" && args.Resolution == "" {
		write = s.writeAnyway
	}
	err = s.writesBy(ctx, write, c, args.AgentID, func(w writing) error {
		if args.Seq == nil {
			return refusal.New("seq is missing: it is the number that begin_action returned")
		}
		if err := checkContent(args.Result); err != nil {
			return err
		}
		a, ok, err := w.Action(args.AgentID, *args.Seq)
		switch {
		case err != nil:
			return err
		case !ok:
			return refusal.New("agent %q has no action %d", args.AgentID, *args.Seq)
		case !a.Open():
			return refusal.New("action %d is %s already", *args.Seq, a.Status)
		}
		result, ref, err := w.spill(args.Result, a.Tool, fmt.Sprintf("act-%d-result", a.Seq))
		if err != nil {
			return err
		}
		out = a.End(args.Status, result, ref, args.Error, strings.TrimSpace(args.Resolution), w.now)
		return w.agent.PutAction(out)
	})
	return out, err
}

// PendingActions returns the open actions, oldest first.
func (s *Service) PendingActions(ctx context.Context, c Caller, args AgentArgs) ([]agent.Action, error) {
	out := []agent.Action{}
	err := s.reading(ctx, c, args.AgentID, func(r Reader, _ access) error {
		open, err := r.OpenActions(args.AgentID)
		out = append(out, open...)
		return err
	})
	return out, err
}
