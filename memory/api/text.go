package api

import "sallyport/memory"

// Text is the surface of plain words: what is said is kept as it is said, and found by its words. It needs a vocabulary
// that has the predicate note.
func Text() Surface {
	return Surface{
		tools: append(textTools(), agentTools()...),
		operations: map[string]string{
			"remember": "remember", "recall": "recall", "forget": "forget", "history": "history", "diff": "diff",
			// Of the typed surface, whose clients are told that the tool is unknown here.
			"timeline": "timeline", "predicates": "list_predicates", "explain": "explain",
		},
		instructions: "This is a memory that outlasts you. Recall what is known about the user before you ask or assume; remember, in " +
			"whole sentences that can be understood alone, what will matter later. If you work as an agent, call agent_resume " +
			"first and follow its briefing; record what you do as you go, so that the process after you can go on.",
	}
}

func textTools() []Tool {
	message := object([]string{"role", "content"}, map[string]schema{
		"role": choice("who speaks", "user", "assistant"), "content": text("what is said"),
	})
	const mostText = 32768
	return []Tool{
		{
			Name: "remember", Title: "Remember", call: operation(strict, (*memory.Service).RememberNote),
			Description: "Keeps a text about the user as it is, or a conversation as one text.",
			InputSchema: object(nil, map[string]schema{
				"text":        {Type: "string", MaxLength: mostText, Description: "what to remember"},
				"messages":    {Type: "array", Items: &message, Description: "a conversation to remember, instead of a text"},
				"observed_at": moment("when it was said; now unless given"),
			}),
		},
		{
			Name: "recall", Title: "Recall", Annotations: reads, call: operation(strict, (*memory.Service).Ask),
			Description: "Returns what is remembered about the user: what shares words with a question, or was said in the time that it " +
				"names; without a question everything.",
			InputSchema: object(nil, map[string]schema{
				"question": text("what to look for; a time such as yesterday, last week or in march is understood"),
				"as_of":    moment("what was remembered then instead of now"),
				"since":    moment("only what was said then or later"),
			}),
		},
		{
			Name: "forget", Title: "Forget", call: operation(strict, (*memory.Service).ForgetNote),
			Description: "Forgets what a text is about. It needs a model to find out what that is; without one it refuses.",
			InputSchema: object([]string{"text"}, map[string]schema{"text": text("what to forget")}),
		},
		{
			Name: "history", Title: "History", Annotations: reads, call: operation(strict, (*memory.Service).AskHistory),
			Description: "Tells how what is remembered about something changed. Texts kept as they are have no such history.",
			InputSchema: object([]string{"question"}, map[string]schema{"question": text("what it is about")}),
		},
		{
			Name: "diff", Title: "Differences", Annotations: reads, call: operation(strict, (*memory.Service).Between),
			Description: "Tells what is remembered differently at two instants.",
			InputSchema: object([]string{"from"}, map[string]schema{
				"from": moment("the earlier instant"), "to": moment("the later one; now unless given"),
			}),
		},
	}
}
