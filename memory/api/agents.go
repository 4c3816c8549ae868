package api

import (
	"context"
	"encoding/json"

	"sallyport/memory"
)

var agentID = schema{Type: "string", MaxLength: 128, Description: "the agent: letters, digits and . _ -"}

func ofAgent(required []string, properties map[string]schema) schema {
	return object(append([]string{"agent_id"}, required...), with(properties, map[string]schema{"agent_id": agentID}))
}

// agentTools are the same on every surface.
func agentTools() []Tool {
	return append(append(leaseTools(), recordTools()...), actionTools()...)
}

func leaseTools() []Tool {
	return []Tool{
		{
			Name: "agent_resume", Title: "Resume an agent", call: operation(lenient, (*memory.Service).Resume),
			Description: "Takes up an agent's work, or begins it: takes the agent's lease, settles what the last process left open, and " +
				"returns a briefing to go on from.",
			InputSchema: ofAgent(nil, map[string]schema{
				"token_budget":      whole("how long the briefing may be, in tokens; 8000 unless given"),
				"lease_ttl_seconds": whole("how long after your last call the agent stays yours: 5 to 3600, 60 unless given"),
				"holder":            {Type: "string", MaxLength: 200, Description: "a name for whoever holds the lease, shown to those who are refused"},
				"output_threshold":  whole("texts of more tokens are stored as outputs; 2000 unless given, negative for never"),
				"defer_lease":       {Type: "boolean", Description: "only read for now; agent_acquire takes the lease later"},
			}),
		},
		{
			Name: "agent_acquire", Title: "Take a deferred lease", call: operation(lenient, (*memory.Service).Acquire),
			Description: "Takes the lease after a resume that deferred it. While another holds it, it says so: try again later.", InputSchema: ofAgent(nil, nil),
		},
		{
			Name: "agent_release", Title: "Release an agent", call: operation(lenient, (*memory.Service).Release),
			Description: "Gives the agent back, so that the next process need not wait for the lease to end.", InputSchema: ofAgent(nil, nil),
		},
		{
			Name: "agent_context", Title: "Read the briefing again", Annotations: reads, call: operation(lenient, (*memory.Service).AgentContext),
			Description: "Returns the briefing as of now, and whether the lease is still held.", InputSchema: ofAgent(nil, nil),
		},
	}
}

func recordTools() []Tool {
	return []Tool{
		{
			Name: "update_working_state", Title: "Update the working state", call: updateState,
			Description: "Writes down what the agent is doing. What is given takes the place of what was there; what is not given stays.",
			InputSchema: ofAgent(nil, map[string]schema{
				"goal": text("what is to be reached"), "plan": texts("the steps to it"), "progress": text("how far it is"),
				"focus": text("what is being done now"), "decisions": texts("what was decided, and why"), "open_questions": texts("what is not known yet"),
				"notes": text("anything else the next process has to know"), "step": whole("the step of the plan"),
			}),
		},
		{
			Name: "working_state_history", Title: "Earlier working states", Annotations: reads, call: operation(lenient, (*memory.Service).StateHistory),
			Description: "Returns the versions of the working state, newest first.", InputSchema: ofAgent(nil, map[string]schema{"limit": whole("how many; 20 unless given")}),
		},
		{
			Name: "agent_milestone", Title: "Note a milestone", call: operation(lenient, (*memory.Service).Milestone),
			Description: "Notes in the working state that something was reached.",
			InputSchema: ofAgent([]string{"name"}, map[string]schema{"name": text("what was reached"), "progress": text("how far the whole is now")}),
		},
		{
			Name: "record_turn", Title: "Record a turn", call: operation(lenient, (*memory.Service).RecordTurn),
			Description: "Keeps one message of the conversation. A long one is stored as an output.",
			InputSchema: ofAgent([]string{"role", "content"}, map[string]schema{
				"role": choice("who speaks", "system", "user", "assistant", "tool"), "content": text("what is said"), "name": text("of the tool or speaker"),
				"message_id": {Type: "string", MaxLength: 256, Description: "your own id of the message"}, "brief": text("what a briefing shows instead of the content"),
			}),
		},
		{
			Name: "recent_turns", Title: "Recent turns", Annotations: reads, call: operation(lenient, (*memory.Service).RecentTurns),
			Description: "Returns the newest turns, oldest first.", InputSchema: ofAgent(nil, map[string]schema{"limit": whole("how many: 20 unless given, 200 at most")}),
		},
		{
			Name: "store_output", Title: "Store an output", call: operation(lenient, (*memory.Service).StoreOutput),
			Description: "Keeps a text, such as what a tool returned, to be fetched by its ref.",
			InputSchema: ofAgent([]string{"content"}, map[string]schema{
				"content": text("the text, at most 1 MiB"), "tool": text("what it came from"), "summary": text("what a briefing shows of it"),
				"ref": {Type: "string", MaxLength: 128, Description: "a name for it, instead of one made up; replaces what has that name"},
			}),
		},
		{
			Name: "fetch_output", Title: "Fetch an output", Annotations: reads, call: operation(lenient, (*memory.Service).FetchOutput),
			Description: "Returns a stored text whole.", InputSchema: ofAgent([]string{"ref"}, map[string]schema{"ref": text("its name")}),
		},
		{
			Name: "set_pointer", Title: "Set a pointer", call: operation(lenient, (*memory.Service).SetPointer),
			Description: "Notes where a piece of the work lies: git_ref (branch or sha), object (uri), env (image, lockfile_hash or setup), external (id or url), process (command).",
			InputSchema: ofAgent([]string{"name", "type", "fields"}, map[string]schema{
				"name": text("of the pointer"), "type": choice("what it points to", "git_ref", "object", "env", "external", "process"),
				"fields": {Type: "object", AdditionalProperties: &schema{Type: "string"}, Description: "where it lies"}, "note": text("what to know about it"),
			}),
		},
		{
			Name: "remove_pointer", Title: "Remove a pointer", call: operation(lenient, (*memory.Service).RemovePointer),
			Description: "Takes a pointer away.", InputSchema: ofAgent([]string{"name"}, map[string]schema{"name": text("of the pointer")}),
		},
		{
			Name: "list_pointers", Title: "List pointers", Annotations: reads, call: operation(lenient, (*memory.Service).ListPointers),
			Description: "Returns the pointers by name.", InputSchema: ofAgent(nil, nil),
		},
	}
}

func actionTools() []Tool {
	return []Tool{
		{
			Name: "begin_action", Title: "Begin an action", call: operation(lenient, (*memory.Service).BeginAction),
			Description: "Records a tool call before it is made, so that a crash in between is noticed. Make the call only if this succeeds.",
			InputSchema: ofAgent([]string{"tool", "class"}, map[string]schema{
				"tool": {Type: "string", MaxLength: 128, Description: "what is called"}, "args": text("with what"),
				"class": choice("what calling it twice would do: nothing (pure), nothing more with the same key (idempotent), happen twice (external)", "pure", "idempotent", "external"),
			}),
		},
		{
			Name: "end_action", Title: "End an action", call: operation(lenient, (*memory.Service).EndAction),
			Description: "Records how a tool call ended.",
			InputSchema: ofAgent([]string{"seq", "status"}, map[string]schema{
				"seq": whole("the number that begin_action returned"), "status": choice("how it ended; unknown leaves it open", "done", "failed", "abandoned", "unknown"),
				"result": text("what came back"), "error": text("what went wrong"), "resolution": text("how it was found out"),
			}),
		},
		{
			Name: "pending_actions", Title: "Pending actions", Annotations: reads, call: operation(lenient, (*memory.Service).PendingActions),
			Description: "Returns the actions that are still open, oldest first.", InputSchema: ofAgent(nil, nil),
		},
	}
}

// updateState needs to know which members were given, and refuses those that are not the caller's to write.
func updateState(ctx context.Context, s *memory.Service, c memory.Caller, a arguments) (any, error) {
	named, err := into[memory.AgentArgs](a, lenient)
	if err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage, len(a.members))
	for name, raw := range a.members {
		if name != "agent_id" && name != "namespace" {
			members[name] = raw
		}
	}
	return s.UpdateState(ctx, c, named.AgentID, members)
}
