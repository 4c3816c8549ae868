package agent

import "time"

// State is an agent's working state: its note to itself.
type State struct {
	Goal          string    `json:"goal,omitempty"`
	Plan          []string  `json:"plan,omitempty"`
	Progress      string    `json:"progress,omitempty"`
	Focus         string    `json:"focus,omitempty"`
	Decisions     []string  `json:"decisions,omitempty"`
	OpenQuestions []string  `json:"open_questions,omitempty"`
	Notes         string    `json:"notes,omitempty"`
	Step          int64     `json:"step,omitempty"`
	LastMilestone string    `json:"last_milestone,omitempty"`
	Version       int64     `json:"version"`
	TurnSeq       int64     `json:"turn_seq,omitempty"`   // the last turn when it was written
	ActionSeq     int64     `json:"action_seq,omitempty"` // the last action when it was written
	UpdatedAt     time.Time `json:"updated_at"`
}

// Patch is a change to a working state; a nil member stays as it is.
type Patch struct {
	Goal, Progress, Focus, Notes   *string
	Plan, Decisions, OpenQuestions *[]string
	Step                           *int64
	Milestone                      *string
}

// Next returns the version of the state that follows s.
func (s State) Next(p Patch, turnSeq, actionSeq int64, now time.Time) State {
	set(&s.Goal, p.Goal)
	set(&s.Progress, p.Progress)
	set(&s.Focus, p.Focus)
	set(&s.Notes, p.Notes)
	set(&s.Plan, p.Plan)
	set(&s.Decisions, p.Decisions)
	set(&s.OpenQuestions, p.OpenQuestions)
	set(&s.Step, p.Step)
	set(&s.LastMilestone, p.Milestone)
	s.Version++
	s.TurnSeq, s.ActionSeq, s.UpdatedAt = turnSeq, actionSeq, now
	return s
}

func set[T any](into, from *T) {
	if from != nil {
		*into = *from
	}
}

// Turn is one message of the agent's conversation.
type Turn struct {
	Seq       int64     `json:"seq"`
	Role      string    `json:"role"`
	Content   string    `json:"content"`
	Name      string    `json:"name,omitempty"`
	OutputRef string    `json:"output_ref,omitempty"` // the output that holds the whole content
	MessageID string    `json:"message_id,omitempty"`
	Brief     string    `json:"brief,omitempty"` // what a briefing shows instead of the content
	At        time.Time `json:"at"`
}

// Output is a stored text, as it is listed: without its content.
type Output struct {
	Ref     string    `json:"ref"`
	Tool    string    `json:"tool,omitempty"`
	Summary string    `json:"summary,omitempty"`
	Tokens  int       `json:"tokens"`
	At      time.Time `json:"at"`
}

// Fetched is an output with its content.
type Fetched struct {
	Ref     string    `json:"ref"`
	Tool    string    `json:"tool,omitempty"`
	Summary string    `json:"summary,omitempty"`
	Content string    `json:"content"`
	At      time.Time `json:"at"`
}

// Pointer says where a piece of the agent's work lies.
type Pointer struct {
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Fields map[string]string `json:"fields"`
	Note   string            `json:"note,omitempty"`
	At     time.Time         `json:"at"`
}

// Action is one tool call, recorded before it is made and closed after.
type Action struct {
	Seq        int64      `json:"seq"`
	Tool       string     `json:"tool"`
	Class      Class      `json:"class"`
	Args       string     `json:"args,omitempty"`
	Key        string     `json:"key"`
	Status     Status     `json:"status"`
	Result     string     `json:"result,omitempty"`
	Error      string     `json:"error,omitempty"`
	ArgsRef    string     `json:"args_ref,omitempty"`
	ResultRef  string     `json:"result_ref,omitempty"`
	Resolution string     `json:"resolution,omitempty"`
	Epoch      int64      `json:"epoch"`
	StartedAt  time.Time  `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at,omitempty"`
}

// Record is what is kept of an agent beside its records: how many there are, and who holds it.
type Record struct {
	Agent     string
	TurnSeq   int64 // of the last turn
	ActionSeq int64 // of the last action
	OutputSeq int64 // grows with every ref that the server made up
	Lease     Lease
}
