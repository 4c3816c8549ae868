package sqlstore

import (
	"encoding/json"
	"fmt"
	"time"

	"sallyport/memory"
	"sallyport/memory/agent"
)

// Agents returns the ids of all agents.
func (s *Scope) Agents() ([]string, error) {
	var out []string
	err := s.rows("read agents", "SELECT agent FROM agents WHERE namespace = ? ORDER BY agent", []any{s.ns}, func(r row) error {
		var id string
		err := r.Scan(&id)
		out = append(out, id)
		return err
	})
	return out, err
}

// Agent returns what is kept of an agent.
func (s *Scope) Agent(agentID string) (agent.Record, error) {
	r := agent.Record{Agent: agentID}
	var ttl int64
	var expires string
	l := &r.Lease
	ok, err := s.row("read an agent", `SELECT epoch, held, pod, connection, holder, ttl_ms, expires, turn_seq, action_seq, output_seq
		FROM agents WHERE namespace = ? AND agent = ?`, []any{s.ns, agentID},
		&l.Epoch, &l.Held, &l.Owner.Pod, &l.Owner.Connection, &l.Holder, &ttl, &expires, &r.TurnSeq, &r.ActionSeq, &r.OutputSeq)
	if err != nil || !ok {
		return r, err
	}
	l.TTL = time.Duration(ttl) * time.Millisecond
	l.Expires, err = unstamp(expires)
	return r, err
}

// PutLease writes who holds an agent.
func (s *Scope) PutLease(agentID string, l agent.Lease) error {
	found, err := s.update("write a lease", `UPDATE agents SET epoch = ?, held = ?, pod = ?, connection = ?, holder = ?, ttl_ms = ?, expires = ?
		WHERE namespace = ? AND agent = ?`,
		l.Epoch, flag(l.Held), l.Owner.Pod, l.Owner.Connection, l.Holder, l.TTL.Milliseconds(), stamp(l.Expires), s.ns, agentID)
	if err != nil || found {
		return err
	}
	s.grown(agentID)
	return s.exec("write a first lease", `INSERT INTO agents (namespace, agent, epoch, held, pod, connection, holder, ttl_ms, expires)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ns, agentID, l.Epoch, flag(l.Held), l.Owner.Pod, l.Owner.Connection, l.Holder, l.TTL.Milliseconds(), stamp(l.Expires))
}

// sessionsKept bounds the sessions that are remembered of one agent. The oldest are forgotten first.
const sessionsKept = 32

// PutSession writes an owner's resume of an agent.
func (s *Scope) PutSession(agentID string, x agent.Session) error {
	found, err := s.update("write a session", `UPDATE sessions SET resumed = ?, epoch = ?, rank = ?, holder = ?, ttl_ms = ?, budget = ?, threshold = ?
		WHERE namespace = ? AND agent = ? AND pod = ? AND connection = ?`,
		flag(x.Resumed), x.Epoch, x.Rank, x.Holder, x.TTL.Milliseconds(), x.TokenBudget, x.Threshold, s.ns, agentID, x.Owner.Pod, x.Owner.Connection)
	if err != nil || found {
		return err
	}
	s.grown(agentID, x.Owner.Pod, x.Owner.Connection)
	err = s.exec("write a first session", `INSERT INTO sessions (namespace, agent, pod, connection, resumed, epoch, rank, holder, ttl_ms, budget, threshold)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ns, agentID, x.Owner.Pod, x.Owner.Connection, flag(x.Resumed), x.Epoch, x.Rank, x.Holder, x.TTL.Milliseconds(), x.TokenBudget, x.Threshold)
	if err != nil {
		return err
	}
	return s.forgetSessions(agentID)
}

func (s *Scope) forgetSessions(agentID string) error {
	return s.rows("forget old sessions", `DELETE FROM sessions WHERE namespace = ? AND agent = ?
		AND rank <= (SELECT rank FROM sessions WHERE namespace = ? AND agent = ? ORDER BY rank DESC LIMIT 1 OFFSET ?)
		AND epoch <> (SELECT epoch FROM agents WHERE namespace = ? AND agent = ? AND held = 1)
		RETURNING octet_length(agent) + octet_length(pod) + octet_length(connection)`,
		[]any{s.ns, agentID, s.ns, agentID, sessionsKept, s.ns, agentID}, func(r row) error {
			var size int64
			err := r.Scan(&size)
			s.gone(size)
			return err
		})
}

// Session returns an owner's resume of an agent, or nil.
func (s *Scope) Session(agentID string, o agent.Owner) (*agent.Session, error) {
	x := agent.Session{Owner: o}
	var ttl int64
	ok, err := s.row("read a session", `SELECT resumed, epoch, rank, holder, ttl_ms, budget, threshold FROM sessions
		WHERE namespace = ? AND agent = ? AND pod = ? AND connection = ?`, []any{s.ns, agentID, o.Pod, o.Connection},
		&x.Resumed, &x.Epoch, &x.Rank, &x.Holder, &ttl, &x.TokenBudget, &x.Threshold)
	if err != nil || !ok {
		return nil, err
	}
	x.TTL = time.Duration(ttl) * time.Millisecond
	return &x, nil
}

// NextRank is larger than the rank of every session of the agent.
func (s *Scope) NextRank(agentID string) (int64, error) {
	var n int64
	_, err := s.row("read ranks", "SELECT coalesce(max(rank), 0) + 1 FROM sessions WHERE namespace = ? AND agent = ?", []any{s.ns, agentID}, &n)
	return n, err
}

// States returns the newest versions of the working state.
func (s *Scope) States(agentID string, n int) ([]agent.State, error) {
	return bodies[agent.State](s, "read working states", "SELECT body FROM states WHERE namespace = ? AND agent = ? ORDER BY version DESC"+limit(n), s.ns, agentID)
}

// Turns returns the newest turns.
func (s *Scope) Turns(agentID string, n int) ([]agent.Turn, error) {
	return bodies[agent.Turn](s, "read turns", "SELECT body FROM turns WHERE namespace = ? AND agent = ? ORDER BY seq DESC"+limit(n), s.ns, agentID)
}

// Pointers returns the pointers by name.
func (s *Scope) Pointers(agentID string) ([]agent.Pointer, error) {
	return bodies[agent.Pointer](s, "read pointers", "SELECT body FROM pointers WHERE namespace = ? AND agent = ? ORDER BY name", s.ns, agentID)
}

// OpenActions returns the open actions, oldest first.
func (s *Scope) OpenActions(agentID string) ([]agent.Action, error) {
	return bodies[agent.Action](s, "read open actions", "SELECT body FROM actions WHERE namespace = ? AND agent = ? AND open = 1 ORDER BY seq", s.ns, agentID)
}

// Actions returns all actions, oldest first.
func (s *Scope) Actions(agentID string) ([]agent.Action, error) {
	return bodies[agent.Action](s, "read actions", "SELECT body FROM actions WHERE namespace = ? AND agent = ? ORDER BY seq", s.ns, agentID)
}

// Action returns one action.
func (s *Scope) Action(agentID string, seq int64) (agent.Action, bool, error) {
	found, err := bodies[agent.Action](s, "read an action", "SELECT body FROM actions WHERE namespace = ? AND agent = ? AND seq = ?", s.ns, agentID, seq)
	if err != nil || len(found) == 0 {
		return agent.Action{}, false, err
	}
	return found[0], true, nil
}

// Outputs returns the newest outputs without their content.
func (s *Scope) Outputs(agentID string, n int) ([]agent.Output, error) {
	var out []agent.Output
	query := "SELECT ref, tool, summary, tokens, at FROM outputs WHERE namespace = ? AND agent = ? ORDER BY written DESC" + limit(n)
	err := s.rows("read outputs", query, []any{s.ns, agentID}, func(r row) error {
		var o agent.Output
		var at string
		err := r.Scan(&o.Ref, &o.Tool, &o.Summary, &o.Tokens, &at)
		if err != nil {
			return err
		}
		o.At, err = unstamp(at)
		out = append(out, o)
		return err
	})
	return out, err
}

// CountOutputs returns how many outputs there are.
func (s *Scope) CountOutputs(agentID string) (int, error) {
	var n int
	_, err := s.row("count outputs", "SELECT count(*) FROM outputs WHERE namespace = ? AND agent = ?", []any{s.ns, agentID}, &n)
	return n, err
}

// Output returns one output with its content.
func (s *Scope) Output(agentID, ref string) (agent.Fetched, bool, error) {
	o := agent.Fetched{Ref: ref}
	var at string
	ok, err := s.row("read an output", "SELECT tool, summary, content, at FROM outputs WHERE namespace = ? AND agent = ? AND ref = ?",
		[]any{s.ns, agentID, ref}, &o.Tool, &o.Summary, &o.Content, &at)
	if err != nil || !ok {
		return o, false, err
	}
	o.At, err = unstamp(at)
	return o, true, err
}

// bodies reads rows of one JSON column.
func bodies[T any](s *Scope, what, query string, args ...any) ([]T, error) {
	var out []T
	err := s.rows(what, query, args, func(r row) error {
		var raw []byte
		if err := r.Scan(&raw); err != nil {
			return err
		}
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

// Fenced returns the way to write to an agent under an epoch. The check holds for the whole transaction, since there is
// no other writer.
func (s *Scope) Fenced(agentID string, epoch int64) (memory.AgentWriter, error) {
	r, err := s.Agent(agentID)
	if err != nil {
		return nil, err
	}
	if !r.Lease.Held || r.Lease.Epoch != epoch {
		return nil, fmt.Errorf("write under epoch %d of agent %s, which is at %d: %w", epoch, agentID, r.Lease.Epoch, memory.ErrStaleEpoch)
	}
	return &fenced{scope: s, agent: agentID, epoch: epoch}, nil
}

// fenced writes to one agent.
type fenced struct {
	scope *Scope
	agent string
	epoch int64
}

func (f *fenced) PutState(x agent.State) error {
	return f.put(nil, "write a working state", "INSERT INTO states (namespace, agent, version, body) VALUES (?, ?, ?, ?)", x, f.scope.ns, f.agent, x.Version)
}

func (f *fenced) PutTurn(x agent.Turn) error {
	if err := f.put(nil, "write a turn", "INSERT INTO turns (namespace, agent, seq, body) VALUES (?, ?, ?, ?)", x, f.scope.ns, f.agent, x.Seq); err != nil {
		return err
	}
	return f.scope.exec("count a turn", "UPDATE agents SET turn_seq = ? WHERE namespace = ? AND agent = ?", x.Seq, f.scope.ns, f.agent)
}

func (f *fenced) PutOutput(x agent.Output, content string) error {
	// Not an update: what is written last is the newest.
	was, err := f.scope.sizeOf("an output that is replaced", `DELETE FROM outputs WHERE namespace = ? AND agent = ? AND ref = ?
		RETURNING octet_length(tool) + octet_length(summary) + octet_length(content)`, f.scope.ns, f.agent, x.Ref)
	if err != nil {
		return err
	}
	if was != nil {
		f.scope.gone(*was)
	}
	f.scope.grown(x.Tool, x.Summary, content)
	return f.scope.exec("write an output", `INSERT INTO outputs (namespace, agent, ref, tool, summary, tokens, at, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		f.scope.ns, f.agent, x.Ref, x.Tool, x.Summary, x.Tokens, stamp(x.At), content)
}

func (f *fenced) PutPointer(x agent.Pointer) error {
	was, err := f.scope.sizeOf("a pointer", "SELECT octet_length(body) FROM pointers WHERE namespace = ? AND agent = ? AND name = ?", f.scope.ns, f.agent, x.Name)
	if err != nil {
		return err
	}
	return f.put(was, "write a pointer", "INSERT INTO pointers (namespace, agent, name, body) VALUES (?, ?, ?, ?) ON CONFLICT (namespace, agent, name) DO UPDATE SET body = excluded.body", x, f.scope.ns, f.agent, x.Name)
}

func (f *fenced) RemovePointer(name string) error {
	was, err := f.scope.sizeOf("a pointer that is removed", "DELETE FROM pointers WHERE namespace = ? AND agent = ? AND name = ? RETURNING octet_length(body)",
		f.scope.ns, f.agent, name)
	if was != nil {
		f.scope.gone(*was)
	}
	return err
}

func (f *fenced) PutAction(x agent.Action) error {
	was, err := f.scope.sizeOf("an action", "SELECT octet_length(body) FROM actions WHERE namespace = ? AND agent = ? AND seq = ?", f.scope.ns, f.agent, x.Seq)
	if err != nil {
		return err
	}
	err = f.put(was, "write an action", `INSERT INTO actions (namespace, agent, seq, open, body) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (namespace, agent, seq) DO UPDATE SET open = excluded.open, body = excluded.body`, x, f.scope.ns, f.agent, x.Seq, flag(x.Open()))
	if err != nil {
		return err
	}
	return f.scope.exec("count an action", "UPDATE agents SET action_seq = ? WHERE namespace = ? AND agent = ? AND action_seq < ?", x.Seq, f.scope.ns, f.agent, x.Seq)
}

func (f *fenced) NextOutput() (int64, error) {
	var n int64
	_, err := f.scope.row("count an output", "UPDATE agents SET output_seq = output_seq + 1 WHERE namespace = ? AND agent = ? RETURNING output_seq",
		[]any{f.scope.ns, f.agent}, &n)
	return n, err
}

func (f *fenced) Extend(expires time.Time) error {
	return f.scope.exec("extend a lease", "UPDATE agents SET expires = ? WHERE namespace = ? AND agent = ? AND epoch = ?", stamp(expires), f.scope.ns, f.agent, f.epoch)
}

// put writes a row whose last column is the record as JSON. Was is the size of the record that it replaces, if there is one.
func (f *fenced) put(was *int64, what, query string, record any, args ...any) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.scope.replaced(was, string(raw))
	return f.scope.exec(what, query, append(args, string(raw))...)
}
