package difftest

import (
	"encoding/json"
	"slices"
	"strings"
)

// ofAgent compares the answers of agent tools. Refusals first: what is excused there is a row of its own.
func (c *comparison) ofAgent(asked object) (verdict, string) {
	r, o := parsedObject(c.reference), parsedObject(c.ours)
	if r["refused"] == true || o["refused"] == true {
		return c.ofRefusal(r, o)
	}
	switch c.step.Op {
	case "agent_resume":
		// "the resume that marks an action unknown still shows it started".
		showUnknown(r["pending_actions"], o["pending_actions"])
	case "agent_acquire":
		if shown(r["pending_actions"]) == shown(settled(o["pending_actions"])) && length(o["pending_actions"]) > 0 {
			return parted, "agent_acquire on an agent that is held settles its actions"
		}
		// "agent_acquire may show an old briefing".
		delete(r, "briefing")
		delete(o, "briefing")
	case "store_output", "record_turn":
		if r["was free"] == false && o["was free"] == true {
			return parted, "made-up refs are counted anew by each resume"
		}
	case "fetch_output":
		if ref, _ := asked["ref"].(string); strings.HasPrefix(ref, "out-") && c.resumes() > 1 {
			return same, "" // the same: it is another output
		}
	}
	// "a query returns the best 20 beliefs however unlike": so do the memories of a resume.
	const most = 20
	if briefs[c.step.Op] && length(r["memories"]) < most && contained(o["memories"], r["memories"]) {
		for _, x := range []object{r, o} {
			delete(x, "memories")
			delete(parsedObject(x["omitted"]), "memories")
			x["briefing"] = withoutMemories(x["briefing"])
		}
	}
	return c.excused()
}

// ofRefusal compares answers of which one at least is a refusal.
func (c *comparison) ofRefusal(r, o object) (verdict, string) {
	switch {
	case o["refused"] != true && c.step.Op == "agent_resume" && c.deferred():
		return parted, "a deferred resume cannot be repeated in its session"
	case (r["refused"] == true) != (o["refused"] == true) && c.deferredByAnother():
		return parted, "a deferred resume by a newer pod puts the earlier one aside"
	case r["refused"] != true && (c.step.Op == "agent_resume" || c.step.Op == "agent_acquire") && o["says"] == "lease is held":
		return parted, "the later of two pods takes over; then the earlier may take it back"
	case r["refused"] == true && o["released"] == false:
		return same, "" // "release is refused while another session has the agent"
	case r["refused"] == true && o["refused"] != true && c.putAside():
		return same, "" // "when it is free again it can be read"
	case r["refused"] == true && o["says"] == "lease was lost":
		return same, "" // "after a loss some calls still say the lease is held"
	}
	return differs, ""
}

// showUnknown marks actions as unknown where ours are.
func showUnknown(reference, ours any) {
	own := list(ours)
	for i, a := range list(reference) {
		if i < len(own) && a["class"] == "external" && a["status"] == "started" && own[i]["status"] == "unknown" {
			a["status"], a["resolution"] = "unknown", own[i]["resolution"]
		}
	}
}

// settled is what becomes of open actions when a process takes over from one that left them.
func settled(actions any) any {
	out := []any{}
	for _, a := range list(parsed(shown(actions))) {
		if a["class"] == "external" && a["status"] == "started" {
			a["status"], a["resolution"] = "unknown", "a sentence"
		}
		if a["class"] != "pure" {
			out = append(out, a)
		}
	}
	return out
}

// resumes counts how often the agent was resumed before.
func (c *comparison) resumes() (n int) {
	for _, s := range c.past {
		if s.Op == "agent_resume" && agentOf(s) == agentOf(c.step) {
			n++
		}
	}
	return n
}

// deferred says whether the agent was resumed without its lease before.
func (c *comparison) deferred() bool {
	return slices.ContainsFunc(c.past, func(s step) bool {
		return s.Op == "agent_resume" && agentOf(s) == agentOf(c.step) && defers(s)
	})
}

func defers(s step) bool {
	var asked object
	_ = json.Unmarshal(s.Body, &asked) // a step is an object
	return asked["defer_lease"] == true
}

// deferredByAnother says whether another pod resumed the agent last, without its lease.
func (c *comparison) deferredByAnother() (found bool) {
	for _, s := range c.past {
		if s.Op == "agent_resume" && agentOf(s) == agentOf(c.step) {
			found = defers(s) && s.Pod != c.step.Pod
		}
	}
	return found
}

// putAside says whether another pod resumed the agent after the one that calls, and the call only reads.
func (c *comparison) putAside() bool {
	mine, another := false, false
	for _, s := range c.past {
		if s.Op == "agent_resume" && agentOf(s) == agentOf(c.step) {
			mine, another = mine || s.Pod == c.step.Pod, mine && s.Pod != c.step.Pod
		}
	}
	reading := []string{"agent_context", "working_state_history", "recent_turns", "fetch_output", "list_pointers", "pending_actions"}
	return mine && another && slices.Contains(reading, c.step.Op)
}

// withoutMemories takes away the words that only beliefs hold.
func withoutMemories(briefing any) any {
	words, _ := briefing.([]any)
	out := []any{}
	for _, w := range words {
		if !strings.HasPrefix(w.(string), "tech-") {
			out = append(out, w)
		}
	}
	return out
}
