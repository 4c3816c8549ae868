package difftest

// What is said on the text surface: texts that share words, and spellings that stand for one text.
var (
	said = []string{
		"Ann lives in Zürich", "ann lives in zürich ", "Ann has a red boat", "The boat is blue", "I take my tea black",
		"No tea after five", "The deploy goes to staging first", "東京に行く",
	}
	questions = []string{"Ann", "boat", "tea", "where is the deploy", "zürich", "nothing of it"}
)

func (g *generator) nextText() step {
	switch n := g.IntN(100); {
	case n < 40:
		return g.say()
	case n < 50:
		return g.converse()
	case n < 75:
		return g.ask()
	case n < 85:
		return g.between()
	case n < 90:
		return made("history", object{"question": pick(g, questions)})
	}
	return g.wrongText()
}

func (g *generator) say() step {
	body := object{"text": pick(g, said)}
	if !g.maybe(4) {
		body["observed_at"] = g.stated()
	}
	return made("remember", body)
}

func (g *generator) converse() step {
	var messages []object
	for range 1 + g.IntN(3) {
		messages = append(messages, object{"role": pick(g, []string{"user", "assistant"}), "content": pick(g, []string{" so it is ", "one\ntwo", "tea?\r\nyes", "the boat"})})
	}
	return made("remember", object{"messages": messages, "observed_at": g.stated()})
}

func (g *generator) ask() step {
	body := object{}
	if g.maybe(2) {
		body["question"] = pick(g, questions)
	}
	for _, member := range []string{"as_of", "since"} {
		if g.maybe(3) {
			body[member] = g.asked()
		}
	}
	return made("recall", body)
}

func (g *generator) between() step {
	body := object{"from": g.asked()}
	if g.maybe(2) {
		body["to"] = g.asked()
	}
	return made("diff", body)
}

func (g *generator) wrongText() step {
	return pick(g, []step{
		made("remember", object{}),
		made("remember", object{"text": " "}),
		made("remember", object{"text": 5}),
		made("remember", object{"text": "x", "messages": []object{{"role": "user", "content": "x"}}}),
		made("remember", object{"text": "x", "subject": "user"}),
		made("remember", object{"text": "x", "observed_at": "then"}),
		made("remember", object{"messages": []object{}}),
		made("remember", object{"messages": []object{{"role": "tool", "content": "x"}}}),
		made("remember", object{"messages": []object{{"role": "user", "content": " "}}}),
		made("remember", object{"messages": []object{{"role": "user", "content": "x", "name": "y"}}}),
		made("remember", object{"messages": "x"}),
		made("recall", object{"limit": 5}),
		made("recall", object{"as_of": "then"}),
		made("recall", object{"question": 5}),
		made("recall", object{"question": ""}),
		made("forget", object{}),
		made("forget", object{"text": pick(g, said)}),
		made("history", object{"question": " "}),
		made("history", object{}),
		made("diff", object{}),
		made("diff", object{"from": "2024-03-05T00:00:00Z", "subject": "user"}),
		made("diff", object{"from": "2024-03-05T00:00:00Z", "to": "2024-03-04T00:00:00Z"}),
		made("diff", object{"from": "2999-03-05T00:00:00Z"}),
		made("timeline", object{"subject": "user", "predicate": "note"}),
		made("predicates", object{}),
		made("explain", object{"question": "x"}),
		made("bogus", object{}),
	})
}

func (g *generator) auditText() []step {
	return []step{
		made("recall", object{}),
		made("recall", object{"since": "2024-02-01T00:00:00Z"}),
		made("diff", object{"from": "2024-02-01T00:00:00Z"}),
	}
}
