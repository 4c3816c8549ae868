package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sallyport/memory/belief"
)

// Context is what a process begins with.
type Context struct {
	AgentID        string          `json:"agent_id"`
	Fresh          bool            `json:"fresh"`
	Epoch          int64           `json:"epoch,omitempty"`
	LeaseHeld      bool            `json:"lease_held"`
	PendingActions []Action        `json:"pending_actions,omitempty"`
	WorkingState   *State          `json:"working_state,omitempty"`
	Pointers       []Pointer       `json:"pointers,omitempty"`
	Outputs        []Output        `json:"outputs,omitempty"`
	Memories       []belief.Belief `json:"memories,omitempty"`
	RecentTurns    []Turn          `json:"recent_turns,omitempty"`
	Omitted        Omitted         `json:"omitted"`
	TurnSeq        int64           `json:"turn_seq"`
	TokenBudget    int             `json:"token_budget"`
	Tokens         int             `json:"tokens"`
	Briefing       string          `json:"briefing"`
}

// Omitted counts what the budget left out.
type Omitted struct {
	Turns    int `json:"turns,omitempty"`
	Memories int `json:"memories,omitempty"`
	Outputs  int `json:"outputs,omitempty"`
}

// Material is everything that a briefing may be made of.
type Material struct {
	Record   Record
	Standing Standing
	Actions  []Action  // open, oldest first
	State    *State    // nil if there is none
	Pointers []Pointer // by name
	Outputs  []Output  // newest first, perhaps not all
	Memories []belief.Belief
	Turns    []Turn // newest first, perhaps not all

	OutputCount int // of all outputs
}

// Brief fits the material into a budget of tokens. Unfinished actions, working state and pointers are whole whatever the
// budget; of the rest the turns may have two fifths, the memories two fifths and what the turns left, the outputs what
// remains, and further turns what is left at last.
func Brief(m Material, budget int) Context {
	c := Context{
		AgentID: m.Record.Agent, Fresh: m.fresh(), LeaseHeld: m.Standing == Holding, PendingActions: m.Actions,
		WorkingState: m.State, Pointers: m.Pointers, TurnSeq: m.Record.TurnSeq, TokenBudget: budget,
	}
	if c.LeaseHeld {
		c.Epoch = m.Record.Lease.Epoch
	}
	head := opening(c) + actionSection(m.Actions) + stateSection(m.State) + pointerSection(m.Pointers)
	rest := max(0, budget-Tokens(head))
	const share, of = 2, 5
	turns := &taking{lines: turnLines(m.Turns), heading: turnHeading}
	memories := &taking{lines: memoryLines(m.Memories), heading: memoryHeading}
	outputs := &taking{lines: outputLines(m.Outputs), heading: outputHeading}
	turns.take(share * rest / of)
	left := share*rest/of - turns.cost
	memories.take(share*rest/of + left)
	outputs.take(rest - turns.cost - memories.cost)
	turns.take(rest - memories.cost - outputs.cost)

	c.Outputs = m.Outputs[:outputs.taken]
	c.Memories = m.Memories[:memories.taken]
	c.RecentTurns = slices.Clone(m.Turns[:turns.taken])
	slices.Reverse(c.RecentTurns)
	c.Omitted = Omitted{
		Turns: int(m.Record.TurnSeq) - turns.taken, Memories: len(m.Memories) - memories.taken, Outputs: m.OutputCount - outputs.taken,
	}
	c.Briefing = head + outputs.text(false) + memories.text(false) + turns.text(true)
	c.Tokens = Tokens(c.Briefing)
	return c
}

func (m Material) fresh() bool {
	return m.State == nil && m.Record.TurnSeq == 0 && m.Record.ActionSeq == 0 && m.OutputCount == 0 && len(m.Pointers) == 0
}

// taking takes lines from the first on until one does not fit. A line that does not fit ends the taking; none is cut.
type taking struct {
	heading string
	lines   []string
	taken   int
	cost    int // tokens of what was taken, the heading included
}

func (t *taking) take(allowed int) {
	for t.taken < len(t.lines) {
		cost := Tokens(t.lines[t.taken])
		if t.taken == 0 {
			cost += Tokens(t.heading)
		}
		if t.cost+cost > allowed {
			return
		}
		t.cost += cost
		t.taken++
	}
}

func (t *taking) text(reversed bool) string {
	if t.taken == 0 {
		return ""
	}
	lines := slices.Clone(t.lines[:t.taken])
	if reversed {
		slices.Reverse(lines)
	}
	return t.heading + strings.Join(lines, "")
}

const (
	actionHeading  = "\n## Actions that were not finished: settle these first\n"
	stateHeading   = "\n## Working state"
	pointerHeading = "\n## Where the work lies\n"
	outputHeading  = "\n## Stored outputs, newest first; fetch_output returns one by its ref\n"
	memoryHeading  = "\n## What is remembered about this\n"
	turnHeading    = "\n## Latest turns\n"
)

func opening(c Context) string {
	if c.Fresh {
		return fmt.Sprintf("You are agent %s. This is a fresh start: no earlier process has left anything for you.\n", c.AgentID)
	}
	return fmt.Sprintf("You are agent %s, taking up the work where an earlier process left it. What it recorded stands below; go on from there.\n", c.AgentID)
}

var advice = map[Class]string{
	Pure:       "It only reads: make the call again if you still need the answer.",
	Idempotent: "Make the call again with the same key: nothing will happen twice.",
	External:   "It may have happened or not. Look before you do anything, and do not repeat it blindly.",
}

func actionSection(actions []Action) string {
	if len(actions) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(actionHeading)
	for i, a := range actions {
		fmt.Fprintf(&b, "%d. %s(%s), %s, key %s, begun %s\n   %s\n", i+1, a.Tool, cut(oneLine(a.Args), briefArgsBytes), a.Class, a.Key, clock(a.StartedAt), advice[a.Class])
	}
	b.WriteString("The task is not finished while one of these is open: do not report it as done, and name the keys of those that you could not settle.\n")
	return b.String()
}

func stateSection(s *State) string {
	if s == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (version %d, step %d, %s)\n", stateHeading, s.Version, s.Step, clock(s.UpdatedAt))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	line("Goal", s.Goal)
	if len(s.Plan) > 0 {
		b.WriteString("Plan:\n")
		for i, p := range s.Plan {
			fmt.Fprintf(&b, "%d. %s\n", i+1, p)
		}
	}
	line("Progress", s.Progress)
	line("Last milestone", s.LastMilestone)
	line("Focus", s.Focus)
	bullets(&b, "Decisions", s.Decisions)
	bullets(&b, "Open questions", s.OpenQuestions)
	line("Notes", s.Notes)
	return b.String()
}

func bullets(b *strings.Builder, name string, items []string) {
	if len(items) == 0 {
		return
	}
	b.WriteString(name + ":\n")
	for _, item := range items {
		b.WriteString("- " + item + "\n")
	}
}

func pointerSection(pointers []Pointer) string {
	if len(pointers) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(pointerHeading)
	for _, p := range pointers {
		fmt.Fprintf(&b, "- %s (%s)", p.Name, p.Type)
		for _, f := range inOrder(p) {
			b.WriteString(" " + f + "=" + p.Fields[f])
		}
		if p.Note != "" {
			b.WriteString(": " + p.Note)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// inOrder lists the fields of a pointer: those that its type is known by as one would tell them, then the others.
func inOrder(p Pointer) []string {
	known := map[string][]string{
		"git_ref": {"repo", "branch", "sha"}, "external": {"kind", "id", "url"}, "env": {"image", "lockfile_hash", "setup"},
		"object": {"uri"}, "process": {"command", "port"},
	}[p.Type]
	fields := slices.Sorted(maps.Keys(p.Fields))
	slices.SortStableFunc(fields, func(a, b string) int { return cmp.Compare(place(known, a), place(known, b)) })
	return fields
}

func place(known []string, field string) int {
	if i := slices.Index(known, field); i >= 0 {
		return i
	}
	return len(known)
}

func outputLines(outputs []Output) []string {
	lines := make([]string, len(outputs))
	for i, o := range outputs {
		tool := o.Tool
		if tool == "" {
			tool = "-"
		}
		lines[i] = fmt.Sprintf("- %s (%s, %d tokens): %s\n", o.Ref, tool, o.Tokens, oneLine(o.Summary))
	}
	return lines
}

func memoryLines(memories []belief.Belief) []string {
	lines := make([]string, len(memories))
	for i, m := range memories {
		lines[i] = fmt.Sprintf("- %s %s: %s\n", m.Subject, strings.ReplaceAll(m.Predicate, "_", " "), m.Value)
	}
	return lines
}

func turnLines(turns []Turn) []string {
	lines := make([]string, len(turns))
	for i, t := range turns {
		who := t.Role
		if t.Name != "" {
			who += " " + t.Name
		}
		text := t.Content
		if t.Brief != "" {
			text = t.Brief
		}
		lines[i] = fmt.Sprintf("[%s #%d] %s\n", who, t.Seq, text)
	}
	return lines
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
