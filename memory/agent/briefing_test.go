package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/memory/agent"
	"sallyport/memory/belief"
)

// material is an agent with something in every section: n turns, outputs and memories.
func material(n int) agent.Material {
	m := agent.Material{
		Record:   agent.Record{Agent: "worker", TurnSeq: int64(n), ActionSeq: 1, Lease: agent.Lease{Epoch: 5}},
		Standing: agent.Holding,
		Actions:  []agent.Action{{Seq: 1, Tool: "ACTION", Args: "ARGS", Class: agent.External, Key: "KEY", Status: agent.Unknown, StartedAt: now}},
		State: &agent.State{
			Goal: "GOAL", Plan: []string{"PLAN1", "PLAN2"}, Progress: "PROGRESS", LastMilestone: "MILESTONE", Focus: "FOCUS",
			Decisions: []string{"DECISION"}, OpenQuestions: []string{"QUESTION"}, Notes: "NOTES", Version: 2, UpdatedAt: now,
		},
		Pointers:    []agent.Pointer{{Name: "POINTER", Type: "object", Fields: map[string]string{"uri": "URI"}, Note: "PNOTE"}},
		OutputCount: n,
	}
	for i := n; i > 0; i-- {
		m.Turns = append(m.Turns, agent.Turn{Seq: int64(i), Role: "user", Content: fmt.Sprintf("TURN%03d %s", i, strings.Repeat("x", 60))})
		m.Outputs = append(m.Outputs, agent.Output{Ref: fmt.Sprintf("OUTPUT%03d", i), Summary: strings.Repeat("s", 60), Tokens: 3})
		m.Memories = append(m.Memories, belief.Belief{Subject: "user", Predicate: "lives_in", Value: belief.Text(fmt.Sprintf("MEMORY%03d", i))})
	}
	return m
}

func TestBriefingOrder(t *testing.T) {
	c := agent.Brief(material(2), 8000)
	at := 0
	for _, part := range []string{
		"worker", "ACTION", "ARGS", "KEY", "GOAL", "PLAN1", "PLAN2", "PROGRESS", "MILESTONE", "FOCUS", "DECISION", "QUESTION", "NOTES",
		"POINTER", "uri=URI", "PNOTE", "OUTPUT002", "OUTPUT001", "MEMORY002", "MEMORY001", "[user #1] TURN001", "[user #2] TURN002",
	} {
		next := strings.Index(c.Briefing[at:], part)
		if next < 0 {
			t.Fatalf("%s is missing, or stands before what it should follow:\n%s", part, c.Briefing)
		}
		at += next
	}
	if c.Tokens != agent.Tokens(c.Briefing) || c.Epoch != 5 || !c.LeaseHeld || c.Fresh || c.Omitted != (agent.Omitted{}) {
		t.Errorf("got %+v", c)
	}
	if c.RecentTurns[0].Seq != 1 || c.Outputs[0].Ref != "OUTPUT002" {
		t.Errorf("turns are oldest first and outputs newest first, got %v and %v", c.RecentTurns, c.Outputs)
	}
}

func TestPointersAreToldByTheFieldsTheyAreKnownBy(t *testing.T) {
	m := agent.Material{Pointers: []agent.Pointer{{
		Name: "ticket", Type: "external", Fields: map[string]string{"a": "1", "id": "2", "kind": "3", "url": "4", "b": "5"},
	}}}
	if b := agent.Brief(m, 8000).Briefing; !strings.Contains(b, "kind=3 id=2 url=4 a=1 b=5") {
		t.Fatal(b)
	}
}

func TestListsInABriefingHaveALineEach(t *testing.T) {
	m := agent.Material{
		Actions: []agent.Action{{Tool: "mail", Args: "one\n two", Class: agent.Pure}, {Tool: "post", Args: strings.Repeat("x", 301), Class: agent.Pure}},
		Outputs: []agent.Output{{Ref: "r", Summary: "three\n\nfour"}},
	}
	b := agent.Brief(m, 8000).Briefing
	for _, line := range []string{"mail(one two)", "post(" + strings.Repeat("x", 300) + "...)", ": three four\n"} {
		if !strings.Contains(b, line) {
			t.Errorf("%q is missing in\n%s", line, b)
		}
	}
}

func TestBriefingShowsTheBriefOfATurn(t *testing.T) {
	m := agent.Material{Record: agent.Record{Agent: "a", TurnSeq: 1}, Turns: []agent.Turn{{Seq: 1, Role: "tool", Name: "grep", Content: "LONG", Brief: "SHORT"}}}
	if b := agent.Brief(m, 8000).Briefing; !strings.Contains(b, "[tool grep #1] SHORT") || strings.Contains(b, "LONG") {
		t.Fatal(b)
	}
}

func TestFreshAgentIsToldSo(t *testing.T) {
	c := agent.Brief(agent.Material{Record: agent.Record{Agent: "a"}}, 100)
	if !c.Fresh || c.LeaseHeld || c.Epoch != 0 || strings.Count(c.Briefing, "\n") != 1 {
		t.Fatalf("got %+v", c)
	}
}

func TestBudget(t *testing.T) {
	whole := agent.Tokens(agent.Brief(material(0), 1).Briefing)
	t.Run("actions, state and pointers are whole whatever the budget", func(t *testing.T) {
		c := agent.Brief(material(50), 1)
		if c.Tokens < whole || len(c.RecentTurns)+len(c.Outputs)+len(c.Memories) != 0 || !strings.Contains(c.Briefing, "PNOTE") {
			t.Fatalf("got %+v", c)
		}
		if c.Omitted != (agent.Omitted{Turns: 50, Memories: 50, Outputs: 50}) {
			t.Fatalf("omitted %+v", c.Omitted)
		}
	})
	t.Run("nothing beyond them exceeds the budget, headings included", func(t *testing.T) {
		for budget := whole; budget < whole+2500; budget += 37 {
			if c := agent.Brief(material(50), budget); c.Tokens > budget {
				t.Fatalf("a budget of %d became %d tokens", budget, c.Tokens)
			}
		}
	})
	t.Run("turns have two fifths, memories two fifths, outputs the rest", func(t *testing.T) {
		const rest = 1000
		c := agent.Brief(material(200), whole+rest)
		const turn, memory, output, heading = 20, 7, 26, 20 // about, in tokens
		if n := len(c.RecentTurns) * turn; n > 2*rest/5+turn || n < 2*rest/5-turn-heading {
			t.Errorf("turns took about %d tokens of %d", n, rest)
		}
		if n := len(c.Memories) * memory; n > 2*rest/5+turn || n < 2*rest/5-turn-2*heading {
			t.Errorf("memories took about %d tokens of %d", n, rest)
		}
		if n := len(c.Outputs) * output; n > rest/5+turn || n < rest/5-output-2*heading {
			t.Errorf("outputs took about %d tokens of %d", n, rest)
		}
	})
	t.Run("what the others leave goes to further turns", func(t *testing.T) {
		m := material(200)
		m.Outputs, m.Memories, m.OutputCount = nil, nil, 0
		if c := agent.Brief(m, whole+1000); len(c.RecentTurns) < 40 {
			t.Errorf("only %d turns of about 20 tokens in 1000", len(c.RecentTurns))
		}
	})
	t.Run("turns that were not even looked at are counted as omitted", func(t *testing.T) {
		m := material(10)
		m.Record.TurnSeq = 300
		if c := agent.Brief(m, 100_000); c.Omitted.Turns != 290 {
			t.Errorf("omitted %d", c.Omitted.Turns)
		}
	})
	t.Run("a turn that does not fit ends the taking", func(t *testing.T) {
		m := agent.Material{Record: agent.Record{Agent: "a", TurnSeq: 3}, Turns: []agent.Turn{
			{Seq: 3, Role: "user", Content: "new"}, {Seq: 2, Role: "user", Content: strings.Repeat("long ", 1000)}, {Seq: 1, Role: "user", Content: "old"},
		}}
		if c := agent.Brief(m, 500); len(c.RecentTurns) != 1 || c.RecentTurns[0].Seq != 3 {
			t.Errorf("turns %+v", c.RecentTurns)
		}
	})
}
