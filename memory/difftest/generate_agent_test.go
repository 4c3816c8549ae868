package difftest

import (
	"fmt"
	"strings"
)

// Agents of one namespace. What they write has words like goal-3 in it, by which a briefing is compared whatever sentences
// stand around them.
var agentIDs = []string{"one", "one", "one", "two"}

func (g *generator) word(kind string) string { return fmt.Sprintf("%s-%d", kind, 1+g.IntN(9)) }

// content is a text that is mostly short; every server stores the long ones as outputs.
func (g *generator) content(kind string) string {
	word := g.word(kind)
	switch g.IntN(12) {
	case 0:
		return strings.Repeat(pick(g, []string{word, word, "é" + word})+" ", 900) // more than 2000 tokens whatever the word
	case 1:
		return "é " + strings.Repeat(word+" ", 60)
	case 2:
		return ""
	case 3:
		return word + "\nand more"
	}
	return word
}

// of makes a call of a tool on an agent, by one of the sequence's pods.
func (g *generator) of(tool string, arguments object) step {
	if arguments["agent_id"] == nil {
		arguments["agent_id"] = pick(g, agentIDs)
	}
	s := made(tool, arguments)
	s.Tool, s.Pod = true, pick(g, g.pods)
	return s
}

func (g *generator) nextOfAgent() step {
	if !g.resumed {
		g.resumed = true
		return g.of("agent_resume", object{"agent_id": "one", "lease_ttl_seconds": 600})
	}
	switch n := g.IntN(100); {
	case n < 12:
		return g.resume()
	case n < 15:
		return g.of("agent_release", object{})
	case n < 16:
		return g.acquire(pick(g, agentIDs))
	case n < 26:
		return g.of("agent_context", object{})
	case n < 38:
		return g.state()
	case n < 55:
		return g.turn()
	case n < 66:
		return g.output()
	case n < 74:
		return g.pointer()
	case n < 90:
		return g.action()
	case n < 94:
		s := made("remember", object{"subject": "user", "predicate": "uses_technology", "value": g.word("tech")})
		s.Pod = pick(g, g.pods)
		return s
	}
	return g.wrongOfAgent()
}

// resume takes leases that outlast the sequence: the reference's epochs grow when it renews one.
func (g *generator) resume() step {
	body := object{"lease_ttl_seconds": pick(g, []int{600, 3600})}
	if g.maybe(3) {
		body["token_budget"] = pick(g, []int{1, 0, 100_000})
	}
	if g.maybe(2) {
		body["output_threshold"] = pick(g, []int{0, 10, 100, -1})
	}
	if g.maybe(4) {
		body["holder"] = "somebody"
	}
	agent := pick(g, agentIDs)
	if g.deferred[agent] { // what can follow in both
		return g.acquire(agent)
	}
	if body["agent_id"] = agent; g.maybe(6) {
		body["defer_lease"], g.deferred[agent] = true, true
	}
	return g.of("agent_resume", body)
}

func (g *generator) acquire(agent string) step {
	tool := "agent_release"
	if g.deferred[agent] && !g.maybe(4) || g.maybe(6) {
		tool = "agent_acquire"
	}
	delete(g.deferred, agent)
	return g.of(tool, object{"agent_id": agent})
}

func (g *generator) state() step {
	switch g.IntN(6) {
	case 0:
		body := object{"name": g.word("milestone") + pick(g, []string{"", " "})}
		if g.maybe(2) {
			body["progress"] = g.word("progress")
		}
		return g.of("agent_milestone", body)
	case 1:
		body := object{}
		if g.maybe(2) {
			body["limit"] = pick(g, []int{0, -1, 1, 2, 50})
		}
		return g.of("working_state_history", body)
	}
	body := object{}
	for _, member := range []string{"goal", "progress", "focus", "notes"} {
		if g.maybe(3) {
			body[member] = pick(g, []any{g.word(member), g.word(member) + " with tech 3", "", nil})
		}
	}
	for _, member := range []string{"plan", "decisions", "open_questions"} {
		if g.maybe(3) {
			body[member] = pick(g, []any{[]string{g.word("plan"), g.word("plan")}, []string{g.word("decision")}, []string{}, nil})
		}
	}
	if g.maybe(3) {
		body["step"] = pick(g, []any{1, 2, 0, -1, nil})
	}
	return g.of("update_working_state", body)
}

func (g *generator) turn() step {
	if g.maybe(4) {
		body := object{}
		if g.maybe(2) {
			body["limit"] = pick(g, []int{0, -1, 1, 2, 500})
		}
		return g.of("recent_turns", body)
	}
	body := object{"role": pick(g, []string{"system", "user", "assistant", "tool", " user "}), "content": g.content("turn")}
	for _, member := range []string{"name", "message_id", "brief"} {
		if g.maybe(5) {
			body[member] = pick(g, []string{"", " "}) + g.word(strings.TrimSuffix(member, "_id"))
		}
	}
	return g.of("record_turn", body)
}

func (g *generator) output() step {
	if g.maybe(3) {
		ref := pick(g, []string{"ref-1", "ref-2", "out-0-1", "out-1-1", "out-2-2", "act-1-args", "act-1-result", "never"})
		return g.of("fetch_output", object{"ref": ref})
	}
	body := object{"content": g.content("output")}
	if g.maybe(2) {
		body["ref"] = pick(g, []string{"ref-1", "ref-2", "out-1-1"})
	}
	if g.maybe(3) {
		body["tool"] = g.word("tool")
	}
	if g.maybe(3) {
		body["summary"] = g.word("summary") + pick(g, []string{"", " "})
	}
	return g.of("store_output", body)
}

func (g *generator) pointer() step {
	const spaced = " branch"
	switch g.IntN(5) {
	case 0:
		return g.of("list_pointers", object{})
	case 1:
		return g.of("remove_pointer", object{"name": g.word("pointer")})
	}
	body := pick(g, []object{
		{"type": "git_ref", "fields": object{spaced: g.word("branch"), "repo": g.word("repo") + " ", "sha": " "}},
		{"type": "object", "fields": object{"uri": g.word("uri")}},
		{"type": "env", "fields": object{"setup": g.word("setup")}},
		{"type": "external", "fields": object{"id": g.word("id"), "kind": g.word("kind")}},
		{"type": "process", "fields": object{"command": g.word("command"), "port": ""}},
		{"type": "git_ref", "fields": object{"repo": "none of those needed"}},
		{"type": "process", "fields": object{"port": "80"}},
		{"type": "external", "fields": object{"kind": "k", "id": ""}},
		{"type": "env", "fields": object{}},
	})
	body["name"] = g.word("pointer")
	if g.maybe(4) {
		body["note"] = g.word("note")
	}
	return g.of("set_pointer", body)
}

func (g *generator) action() step {
	switch g.IntN(6) {
	case 0:
		return g.of("pending_actions", object{})
	case 1, 2, 3:
		body := object{"tool": g.word("tool"), "class": pick(g, []string{"pure", "idempotent", "external"})}
		if !g.maybe(3) {
			body["args"] = g.content("args")
		}
		return g.of("begin_action", body)
	}
	body := object{"seq": 1 + g.IntN(4), "status": pick(g, []string{"done", "failed", "abandoned", "unknown", "unknown"})}
	if g.maybe(2) {
		body["result"] = g.content("result")
	}
	if g.maybe(4) {
		body["error"] = g.word("error")
	}
	if g.maybe(4) {
		body["resolution"] = g.word("resolution")
	}
	return g.of("end_action", body)
}

func (g *generator) wrongOfAgent() step {
	return pick(g, []step{
		g.of("agent_resume", object{"agent_id": "a b"}),
		g.of("agent_resume", object{"agent_id": ""}),
		g.of("agent_resume", object{"agent_id": "one "}),
		g.of("agent_resume", object{"agent_id": "."}),
		g.of("agent_resume", object{"agent_id": 5}),
		g.of("agent_resume", object{"agent_id": strings.Repeat("x", 129)}),
		g.of("agent_resume", object{"agent_id": "three", "lease_ttl_seconds": 4}),
		g.of("agent_resume", object{"agent_id": "three", "lease_ttl_seconds": 3601}),
		g.of("agent_resume", object{"agent_id": "three", "lease_ttl_seconds": -1}),
		g.of("agent_resume", object{"agent_id": "three", "token_budget": -1}),
		g.of("agent_resume", object{"agent_id": "three", "token_budget": "1"}),
		g.of("agent_resume", object{"agent_id": "three", "holder": strings.Repeat("é", 201)}),
		g.of("agent_context", object{"agent_id": "three"}),
		g.of("agent_acquire", object{"agent_id": "three"}),
		g.of("agent_release", object{"agent_id": "three"}),
		g.of("record_turn", object{"role": "robot", "content": "x"}),
		g.of("record_turn", object{"content": "x"}),
		g.of("record_turn", object{"role": "user"}),
		g.of("record_turn", object{"role": "user", "content": 5}),
		g.of("record_turn", object{"role": "user", "content": "x", "bogus": 1}),
		g.of("record_turn", object{"role": "user", "content": "x", "message_id": strings.Repeat("é", 129)}),
		g.of("recent_turns", object{"limit": "x"}),
		g.of("update_working_state", object{"bogus": 1}),
		g.of("update_working_state", object{"version": 1}),
		g.of("update_working_state", object{"turn_seq": 1}),
		g.of("update_working_state", object{"goal": 1}),
		g.of("update_working_state", object{"plan": "x"}),
		g.of("update_working_state", object{"step": 1.5}),
		g.of("agent_milestone", object{}),
		g.of("agent_milestone", object{"name": ""}),
		g.of("store_output", object{"content": "x", "ref": "a b"}),
		g.of("store_output", object{}),
		g.of("fetch_output", object{}),
		g.of("fetch_output", object{"ref": ""}),
		g.of("set_pointer", object{"name": "p", "type": "bogus", "fields": object{"uri": "u"}}),
		g.of("set_pointer", object{"name": "a b", "type": "object", "fields": object{"uri": "u"}}),
		g.of("set_pointer", object{"type": "object", "fields": object{"uri": "u"}}),
		g.of("set_pointer", object{"name": "p", "type": "object"}),
		g.of("set_pointer", object{"name": "p", "type": "object", "fields": object{"uri": 5}}),
		g.of("remove_pointer", object{}),
		g.of("remove_pointer", object{"name": "a b"}),
		g.of("begin_action", object{"tool": "", "class": "pure"}),
		g.of("begin_action", object{"tool": strings.Repeat("x", 129), "class": "pure"}),
		g.of("begin_action", object{"tool": "t", "class": "bogus"}),
		g.of("begin_action", object{"tool": "t"}),
		g.of("begin_action", object{"tool": "t", "class": "pure", "args": object{}}),
		g.of("end_action", object{"seq": 1, "status": "started"}),
		g.of("end_action", object{"seq": 1}),
		g.of("end_action", object{"status": "done"}),
		g.of("end_action", object{"seq": 99, "status": "done"}),
		g.of("end_action", object{"seq": -1, "status": "done"}),
		g.of("no_such_tool", object{}),
	})
}

// auditAgents resumes both agents, unless they are, and asks for all of their records.
func (g *generator) auditAgents() []step {
	out := []step{made("recall", object{"subject": "user", "limit": 1000})}
	out[0].Pod = g.pods[0]
	for _, agent := range []string{"one", "two"} {
		pod := g.pods[len(g.pods)-1]
		for _, s := range []step{
			g.of("agent_resume", object{"agent_id": agent, "lease_ttl_seconds": 600, "token_budget": 100_000}),
			g.of("agent_context", object{"agent_id": agent}),
			g.of("working_state_history", object{"agent_id": agent, "limit": 200}),
			g.of("recent_turns", object{"agent_id": agent, "limit": 200}),
			g.of("list_pointers", object{"agent_id": agent}),
			g.of("pending_actions", object{"agent_id": agent}),
			g.of("fetch_output", object{"agent_id": agent, "ref": "out-1-1"}),
			g.of("fetch_output", object{"agent_id": agent, "ref": "ref-1"}),
			g.of("fetch_output", object{"agent_id": agent, "ref": "act-1-args"}),
		} {
			s.Pod = pod
			out = append(out, s)
		}
	}
	return out
}
