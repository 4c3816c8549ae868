package memory

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"sallyport/memory/agent"
	"sallyport/memory/belief"
)

// ExportVersion is told by the first line of an export.
const ExportVersion = 1

// line is one line of an export: exactly one of its members is set. Agent goes with those that are an agent's.
type line struct {
	Version   int                `json:"sallyport_memory,omitempty"`
	Predicate *exportedPredicate `json:"predicate,omitempty"`
	Event     *belief.Event      `json:"event,omitempty"`

	Agent   string          `json:"agent,omitempty"`
	Epoch   int64           `json:"epoch,omitempty"` // of the agent's last lease
	State   *agent.State    `json:"state,omitempty"`
	Turn    *agent.Turn     `json:"turn,omitempty"`
	Output  *exportedOutput `json:"output,omitempty"`
	Pointer *agent.Pointer  `json:"pointer,omitempty"`
	Action  *agent.Action   `json:"action,omitempty"`
}

type exportedPredicate struct {
	belief.Predicate
	DefinedAt time.Time `json:"defined_at"`
}

type exportedOutput struct {
	agent.Output
	Content string `json:"content"`
}

// Export writes all that a namespace holds as JSON lines: the predicates it defined, every event in the order in which
// they were written, and the records of its agents. Who holds which agent is not part of it.
func Export(ctx context.Context, store Store, namespace string, to io.Writer) error {
	w := bufio.NewWriter(to)
	e := exporter{json.NewEncoder(w)}
	e.SetEscapeHTML(false)
	err := store.Read(ctx, namespace, func(r Reader) error {
		if err := e.Encode(line{Version: ExportVersion}); err != nil {
			return err
		}
		if err := e.beliefs(r); err != nil {
			return err
		}
		ids, err := r.Agents()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := e.agent(r, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("export %s: %w", namespace, err)
	}
	return w.Flush()
}

type exporter struct{ *json.Encoder }

func (e exporter) beliefs(r Reader) error {
	predicates, err := r.Predicates()
	if err != nil {
		return err
	}
	for _, p := range predicates {
		if err := e.Encode(line{Predicate: &exportedPredicate{p, p.DefinedAt}}); err != nil {
			return err
		}
	}
	events, err := r.Events(EventFilter{})
	if err != nil {
		return err
	}
	slices.SortFunc(events, func(a, b belief.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range events {
		if err := e.Encode(line{Event: &events[i]}); err != nil {
			return err
		}
	}
	return nil
}

// agent writes an agent's records, oldest first.
func (e exporter) agent(r Reader, id string) error {
	record, err := r.Agent(id)
	if err != nil {
		return err
	}
	if err := e.Encode(line{Agent: id, Epoch: record.Lease.Epoch}); err != nil {
		return err
	}
	const all = 0
	states, err := r.States(id, all)
	if err := each(e, states, err, true, func(l *line, x *agent.State) { l.Agent, l.State = id, x }); err != nil {
		return err
	}
	turns, err := r.Turns(id, all)
	if err := each(e, turns, err, true, func(l *line, x *agent.Turn) { l.Agent, l.Turn = id, x }); err != nil {
		return err
	}
	pointers, err := r.Pointers(id)
	if err := each(e, pointers, err, false, func(l *line, x *agent.Pointer) { l.Agent, l.Pointer = id, x }); err != nil {
		return err
	}
	actions, err := r.Actions(id)
	if err := each(e, actions, err, false, func(l *line, x *agent.Action) { l.Agent, l.Action = id, x }); err != nil {
		return err
	}
	outputs, err := r.Outputs(id, all)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(outputs) {
		whole, _, err := r.Output(id, o.Ref)
		if err != nil {
			return err
		}
		if err := e.Encode(line{Agent: id, Output: &exportedOutput{o, whole.Content}}); err != nil {
			return err
		}
	}
	return nil
}

func each[T any](e exporter, records []T, err error, newestFirst bool, set func(*line, *T)) error {
	if err != nil {
		return err
	}
	if newestFirst {
		slices.Reverse(records)
	}
	for i := range records {
		var l line
		set(&l, &records[i])
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
