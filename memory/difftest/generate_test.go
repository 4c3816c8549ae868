package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// step is one operation. Its body is the JSON that both servers get.
type step struct {
	Op   string
	Body json.RawMessage
	Tool bool   // it is called over MCP
	Pod  string // whose key is used; empty for a key of no pod
}

func (s step) String() string {
	called := "POST /v1/"
	if s.Tool {
		called = "tool "
	}
	return fmt.Sprintf("%s%s %.500s %s", called, s.Op, s.Body, s.Pod)
}

type object = map[string]any

// generator makes operations that touch each other: few subjects, few predicates, few values, few days.
type generator struct {
	*rand.Rand
	open    bool     // predicates are defined by use
	pods    []string // whose keys are used
	resumed bool     // an agent, once

	deferred map[string]bool // agents that were resumed without their lease
}

// The pools. Spellings that stand for one thing are in them on purpose.
var (
	subjects = []string{"user", "ann", " Ann ", "the project"}
	strings_ = []string{
		"lives_in", "name", "role", "uses_technology", "Uses Technology", "likes", "dislikes", "owns", "gave_away",
		"plans", "cancelled", "did", "note", "goal", "pet",
	}
	registered = []string{
		"name", "role", "project_status", "uses_technology", "Uses Technology", "project_constraint", "note", "prefers_editor", " timezone ",
		"pet", "",
	}
	values = []string{"tea", "Tea ", "coffee", "a boat", "A  boat", "Zürich", "straße", "42", "x", "東京"}
	others = map[string][]any{
		"score": {1, 1.0, 2.5, 0, -3, json.RawMessage("1E2"), json.RawMessage("100.0"), json.RawMessage("12345678901234567890"), 1e21, 1e-7},
		"ready": {true, false}, "rank": {7, 8},
	}
)

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// soon stands for an instant shortly ahead of the clock, which play puts in its place.
const soon = "soon"

// maybe is true in one of n cases.
func (g *generator) maybe(n int) bool { return g.IntN(n) == 0 }

// Days on which things are stated lie a day apart, and instants that are asked about lie between them: whether a statement
// of an instant is before or after it is decided by nanoseconds where two are of the same one.
func (g *generator) stated() string {
	switch g.IntN(500) {
	case 0, 1, 2:
		return soon
	case 3:
		return "0001-01-01T00:00:00Z"
	case 4, 5, 6, 7, 8, 9, 10, 11, 12, 13:
		return pick(g, []string{"2024-03-05T02:00:00+02:00", "2024-03-04T19:00:00-05:00", "2024-03-05T00:00:00.25Z", "0001-01-01T00:00:00.5Z", "1969-12-31T23:59:59Z"})
	}
	return time.Date(2024, 3, 1+g.IntN(10), 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

func (g *generator) asked() string {
	switch g.IntN(100) {
	case 0:
		return "0001-01-01T00:00:00Z"
	case 1, 2:
		return "2999-01-01T00:00:00Z"
	}
	return time.Date(2024, 3, g.IntN(12), 12, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

// pair returns a predicate and a value of its type; in one of 25 cases of another.
func (g *generator) pair() (string, any) {
	names := registered
	if g.open {
		names = strings_
	}
	predicate, value := pick(g, names), any(pick(g, values))
	if g.open && g.maybe(5) {
		predicate = pick(g, []string{"score", "ready", "rank"})
		value = pick(g, others[predicate])
	}
	if predicate == "score" && g.maybe(60) {
		value = json.RawMessage("-0")
	}
	if g.maybe(25) {
		value = pick(g, []any{7, true, "words"})
	}
	return predicate, value
}

func (g *generator) replaces() []object {
	var out []object
	for range 1 + g.IntN(2) {
		predicate, value := g.pair()
		out = append(out, object{"predicate": predicate, "value": value})
	}
	return out
}

// next makes an operation.
func (g *generator) next() step {
	switch n := g.IntN(100); {
	case n < 45:
		return g.remember()
	case n < 50:
		return g.text()
	case n < 58:
		return g.forget()
	case n < 76:
		return g.recall()
	case n < 81:
		return g.ofPair("history")
	case n < 87:
		return g.ofPair("timeline")
	case n < 93:
		return g.diff()
	case n < 94:
		return made("explain", object{"question": pick(g, values)})
	case n < 95:
		return made("predicates", object{})
	case n < 98:
		return g.odd()
	}
	return g.wrong()
}

func made(op string, body object) step {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // everything in the pools is JSON
	}
	return step{Op: op, Body: raw}
}

func (g *generator) remember() step {
	predicate, value := g.pair()
	body := object{"subject": pick(g, subjects), "predicate": predicate, "value": value}
	if !g.maybe(3) {
		body["observed_at"] = g.stated()
	}
	if g.maybe(4) {
		body["replaces"] = g.replaces()
	}
	if g.maybe(4) {
		body["source"] = pick(g, []string{"user_stated", "agent_inferred", "tool_result"})
		body["kind"] = pick(g, []string{"fact", "preference"})
		body["confidence"] = pick(g, []float64{0, 0.25, 0.5, 1})
	}
	if g.maybe(4) {
		body["cardinality"] = pick(g, []string{"single", "multi"})
		body["description"] = "as described"
	}
	return made("remember", body)
}

func (g *generator) text() step {
	statements := []object{}
	for range g.IntN(3) {
		predicate, value := g.pair()
		s := object{"subject": pick(g, subjects), "predicate": predicate, "value": value, "evidence": "words " + string(rune('a'+g.IntN(3)))}
		if g.maybe(4) {
			s["replaces"] = g.replaces()
		}
		statements = append(statements, s)
	}
	body := object{"text": fmt.Sprintf("Text %d: words a, words b, words c.", g.IntN(3)), "statements": statements}
	if !g.maybe(3) {
		body["observed_at"] = g.stated()
	}
	return made("remember", body)
}

func (g *generator) forget() step {
	predicate, value := g.pair()
	body := object{"subject": pick(g, subjects), "predicate": predicate}
	if !g.maybe(3) {
		body["value"] = value
	}
	return made("forget", body)
}

func (g *generator) recall() step {
	body := object{}
	predicate, _ := g.pair()
	if !g.maybe(4) {
		body["subject"] = pick(g, subjects)
	}
	if !g.maybe(3) || len(body) == 0 {
		body["predicate"] = predicate
	}
	switch {
	case len(body) == 2 && g.maybe(4):
		body["limit"] = 1 + g.IntN(3)
	case g.maybe(5):
		body["query"], body["limit"] = pick(g, values), 1000
		if g.maybe(2) {
			delete(body, "subject")
			delete(body, "predicate")
		}
	default:
		body["limit"] = 1000
	}
	for _, member := range []string{"as_of", "observed_after", "observed_before"} {
		if g.maybe(4) {
			body[member] = g.asked()
		}
	}
	if g.maybe(6) {
		body["min_confidence"] = 0.5
	}
	if g.maybe(6) {
		body["with_sources"] = true
	}
	return made("recall", body)
}

func (g *generator) ofPair(op string) step {
	predicate, _ := g.pair()
	return made(op, object{"subject": pick(g, subjects), "predicate": predicate})
}

func (g *generator) diff() step {
	body := object{"from": g.asked()}
	if !g.maybe(3) {
		body["to"] = g.asked()
	}
	if g.maybe(3) {
		body["subject"] = pick(g, subjects)
	}
	return made("diff", body)
}

// audit asks for everything that the pools can name.
func (g *generator) audit() []step {
	names := []string{"name", "role", "uses_technology", "note", "prefers_editor", "pet"}
	if g.open {
		names = []string{"lives_in", "uses_technology", "likes", "owns", "gave_away", "cancelled", "note", "pet", "score"}
	}
	out := []step{made("predicates", object{}), made("diff", object{"from": "1960-02-01T00:00:00Z"})}
	for _, subject := range []string{"user", "ann", "the project"} {
		out = append(out, made("recall", object{"subject": subject, "limit": 1000, "with_sources": true}))
		for _, predicate := range names {
			out = append(out, made("history", object{"subject": subject, "predicate": predicate}), made("timeline", object{"subject": subject, "predicate": predicate}))
		}
	}
	return out
}
