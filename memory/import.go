package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sallyport/memory/agent"
	"sallyport/memory/belief"
)

// Imported counts what was read.
type Imported struct {
	Events int
	Agents int
}

// ErrNotEmpty says that a namespace holds something already: two histories are not one.
var ErrNotEmpty = errors.New("the namespace is not empty")

// Import reads what Export wrote into a namespace that holds nothing, all or nothing of it. Beside those lines it takes
// what a server of the Memory API lists: arrays as /v1/predicates and /v1/history answer with.
func Import(ctx context.Context, store Store, namespace string, from io.Reader) (out Imported, err error) {
	lines, err := readLines(from)
	if err != nil {
		return out, err
	}
	err = store.Write(ctx, namespace, func(w Writer) error {
		if err := mustBeEmpty(w); err != nil {
			return err
		}
		in := importer{Writer: w, subjects: map[string]bool{}, predicates: map[string]belief.Predicate{}, agents: map[string]AgentWriter{}, epochs: map[string]int64{}}
		for _, l := range lines {
			if err := in.take(l); err != nil {
				return err
			}
		}
		out = Imported{Events: in.events, Agents: len(in.agents)}
		return in.finish()
	})
	if err != nil {
		return Imported{}, fmt.Errorf("import into %s: %w", namespace, err)
	}
	return out, nil
}

func mustBeEmpty(r Reader) error {
	events, err := r.Events(EventFilter{Limit: 1})
	if err != nil {
		return err
	}
	agents, err := r.Agents()
	if err == nil && len(events)+len(agents) > 0 {
		err = ErrNotEmpty
	}
	return err
}

func readLines(from io.Reader) ([]line, error) {
	var out []line
	d := json.NewDecoder(from)
	for n := 1; ; n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read value %d: %w", n, err)
		}
		lines, err := read(raw)
		if err != nil {
			return nil, fmt.Errorf("read value %d: %w", n, err)
		}
		out = append(out, lines...)
	}
}

// read reads one line of an export, or one answer of a server.
func read(raw json.RawMessage) ([]line, error) {
	if string(raw) == "null" { // the history of a pair that has none
		return nil, nil
	}
	if raw[0] != '[' {
		var l line
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return nil, err
		}
		if l.Version > ExportVersion {
			return nil, fmt.Errorf("it is of version %d, and this program reads %d", l.Version, ExportVersion)
		}
		return []line{l}, nil
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	var out []line
	for _, row := range rows {
		var l line
		var kind struct{ Cardinality string }
		err := json.Unmarshal(row, &kind)
		if err == nil && kind.Cardinality != "" {
			l.Predicate = &exportedPredicate{DefinedAt: time.Now().UTC()}
			err = json.Unmarshal(row, l.Predicate)
		} else if err == nil {
			err = json.Unmarshal(row, &l.Event)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// importer writes lines, and what they amount to in the end.
type importer struct {
	Writer
	events     int
	subjects   map[string]bool
	predicates map[string]belief.Predicate // that the namespace defines
	agents     map[string]AgentWriter
	epochs     map[string]int64
}

func (in *importer) take(l line) error {
	switch {
	case l.Predicate != nil:
		return in.predicate(*l.Predicate)
	case l.Event != nil:
		return in.event(*l.Event)
	case l.Agent != "":
		return in.ofAgent(l)
	}
	return nil
}

func (in *importer) predicate(p exportedPredicate) error {
	vocabulary := belief.Open()
	if _, starter := vocabulary.Starter(p.Name); starter {
		return nil
	}
	if name, err := vocabulary.Canonical(p.Name); err != nil || name != p.Name {
		return fmt.Errorf("%q is no predicate's name", p.Name)
	}
	p.Predicate.DefinedAt = p.DefinedAt
	in.predicates[p.Name] = p.Predicate
	return in.Define(p.Predicate)
}

func (in *importer) event(e belief.Event) error {
	if e.ID == "" || e.Subject == "" || e.Predicate == "" || e.Value.IsZero() && !e.Retraction || e.Subject != belief.Subject(e.Subject) {
		return fmt.Errorf("event %q has no id, no subject, no predicate or no value", e.ID)
	}
	if name, err := belief.Open().Canonical(e.Predicate); err != nil || name != e.Predicate {
		return fmt.Errorf("event %q: %q is no predicate's name", e.ID, e.Predicate)
	}
	e.ObservedAt = e.ObservedAt.UTC()
	in.events++
	in.subjects[e.Subject] = true
	return in.Append([]belief.Event{e})
}

// ofAgent writes one record under a lease that the import holds for as long as it takes.
func (in *importer) ofAgent(l line) error {
	w := in.agents[l.Agent]
	if w == nil {
		if err := agent.CheckID("agent", l.Agent); err != nil {
			return err
		}
		in.epochs[l.Agent] = l.Epoch + 1
		if err := in.PutLease(l.Agent, agent.Lease{Epoch: l.Epoch + 1, Held: true, Holder: "import"}); err != nil {
			return err
		}
		var err error
		if w, err = in.Fenced(l.Agent, l.Epoch+1); err != nil {
			return err
		}
		in.agents[l.Agent] = w
	}
	switch {
	case l.State != nil:
		return w.PutState(*l.State)
	case l.Turn != nil:
		return w.PutTurn(*l.Turn)
	case l.Pointer != nil:
		return w.PutPointer(*l.Pointer)
	case l.Action != nil:
		return w.PutAction(*l.Action)
	case l.Output != nil:
		return w.PutOutput(l.Output.Output, l.Output.Content)
	}
	return nil
}

// finish folds the events and gives the agents back.
func (in *importer) finish() error {
	vocabulary := belief.Open()
	rules := func(name string) belief.Predicate {
		if p, ok := vocabulary.Starter(name); ok {
			return p
		}
		if p, ok := in.predicates[name]; ok {
			return p
		}
		return belief.Predicate{Name: name, Cardinality: belief.Multi}
	}
	for subject := range in.subjects {
		events, err := in.Events(EventFilter{Subject: subject})
		if err != nil {
			return err
		}
		if err := in.PutBeliefs(belief.Fold(rules, events).All()); err != nil {
			return err
		}
	}
	for id, epoch := range in.epochs {
		if err := in.PutLease(id, agent.Lease{Epoch: epoch + 1}); err != nil {
			return err
		}
	}
	return nil
}
