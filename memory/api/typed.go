package api

import (
	"context"

	"sallyport/memory"
)

// Whether an operation refuses members that it does not know.
const (
	strict  = true
	lenient = false
)

// Typed is the surface of subjects, predicates and values. With open predicates the first statement under a new one
// defines it.
func Typed(open bool) Surface {
	return Surface{
		tools: append(typedTools(open), agentTools()...),
		operations: map[string]string{
			"remember": "remember", "recall": "recall", "forget": "forget", "history": "memory_history", "timeline": "timeline",
			"diff": "diff", "predicates": "list_predicates", "explain": "explain",
		},
		instructions: "This is a memory that outlasts you. Recall what is known before you ask or assume; remember what will matter " +
			"later, one statement at a time: who or what it is about, a predicate from list_predicates, a value. When a statement " +
			"makes an older one untrue, name that in replaces. If you work as an agent, call agent_resume first and follow its " +
			"briefing; record what you do as you go, so that the process after you can go on.",
	}
}

var pair = map[string]schema{
	"subject":   text("whom or what it is about, such as user or the name of a project; upper and lower case are one"),
	"predicate": text("what is said of it; list_predicates names those there are"),
}

func typedTools(open bool) []Tool {
	return []Tool{
		{
			Name: "list_predicates", Title: "List predicates", Annotations: reads, InputSchema: object(nil, nil),
			Description: "Lists what can be said of a subject: each predicate, whether it has one value at a time or several, and their type.",
			call: func(ctx context.Context, s *memory.Service, c memory.Caller, _ arguments) (any, error) {
				return s.Predicates(ctx, c)
			},
		},
		rememberTool(open),
		{
			Name: "recall", Title: "Recall", Annotations: reads, call: operation(lenient, (*memory.Service).Recall),
			Description: "Returns what is believed: of a subject, under a predicate, or what a query finds by its words. A query beside " +
				"a subject or predicate puts their beliefs in order; a query alone returns only what shares a word with it, or was " +
				"stated in the time it names.",
			InputSchema: object(nil, with(pair, map[string]schema{
				"query":           text("words to search for; a time such as yesterday, last week or in march is understood"),
				"as_of":           moment("what was believed then instead of now"),
				"min_confidence":  fraction("leave out what is believed with less confidence"),
				"limit":           whole("how many beliefs at most: 20 unless given, and no more than 1000"),
				"with_sources":    {Type: "boolean", Description: "add the texts that beliefs were drawn from"},
				"observed_after":  moment("only what was stated then or later"),
				"observed_before": moment("only what was stated then or earlier"),
			})),
		},
		{
			Name: "forget", Title: "Forget", call: operation(lenient, (*memory.Service).Forget),
			Description: "Ends a belief, or without a value everything believed under the predicate. The history keeps what was stated.",
			InputSchema: object([]string{"subject", "predicate"}, with(pair, map[string]schema{"value": scalar("the value to forget; leave it out to forget all")})),
		},
		{
			Name: "explain", Title: "Explain", Annotations: reads, call: operation(lenient, (*memory.Service).Explain),
			Description: "Answers a question with beliefs and why they are held: where each came from, its history, and the rules of its predicate.",
			InputSchema: object([]string{"question"}, map[string]schema{"question": text("what to explain")}),
		},
		{
			Name: "memory_history", Title: "History", Annotations: reads, call: operation(lenient, (*memory.Service).History),
			Description: "Returns every statement and retraction about a subject under a predicate, in order of time.",
			InputSchema: object([]string{"subject", "predicate"}, pair),
		},
		{
			Name: "timeline", Title: "Timeline", Annotations: reads, call: operation(strict, (*memory.Service).Timeline),
			Description: "Tells in sentences how what is believed of a subject under a predicate changed, step by step.",
			InputSchema: object([]string{"subject", "predicate"}, pair),
		},
		{
			Name: "diff", Title: "Differences", Annotations: reads, call: operation(strict, (*memory.Service).Diff),
			Description: "Tells what is believed differently at two instants.",
			InputSchema: object([]string{"from"}, map[string]schema{
				"from": moment("the earlier instant"), "to": moment("the later one; now unless given"), "subject": text("only what is about it"),
			}),
		},
	}
}

func rememberTool(open bool) Tool {
	statement := map[string]schema{
		"value":    scalar("what is said; its type is the predicate's"),
		"replaces": refs("what the statement makes untrue, of the same subject and under other predicates"),
	}
	definition := map[string]schema{
		"cardinality": choice("for a new predicate: one value at a time, or several", "single", "multi"),
		"description": text("for a new predicate: what it says of a subject"),
	}
	if open {
		statement = with(statement, definition)
	}
	proposal := object([]string{"subject", "predicate", "value", "evidence"}, with(with(pair, statement), map[string]schema{
		"evidence": text("the words of the text that say it, exactly as they stand there"),
	}))
	const mostText, mostStatements = 32768, 32
	return Tool{
		Name: "remember", Title: "Remember", call: operation(lenient, (*memory.Service).Remember),
		Description: "Files a statement: subject, predicate, value. A predicate with one value at a time takes the new one in the place of " +
			"the old. Or give a text with the statements you found in it; the text is kept as a note.",
		InputSchema: object(nil, with(with(pair, statement), map[string]schema{
			"kind":        choice("fact unless given", "fact", "preference"),
			"source":      choice("where it comes from; user_stated unless given", "user_stated", "agent_inferred", "tool_result"),
			"confidence":  fraction("how sure it is; 1 unless given"),
			"observed_at": moment("when it was so; now unless given"),
			"text":        {Type: "string", MaxLength: mostText, Description: "a text to keep, instead of one statement"},
			"statements":  {Type: "array", MaxItems: mostStatements, Items: &proposal, Description: "what the text says; [] keeps it as a note only"},
		})),
	}
}
