package difftest

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	speed = flag.Bool("speed", false, "measure beside the reference instead of comparing answers; takes ten minutes")
	quick = flag.Bool("quick", false, "with -speed: show only that everything works, with a tenth of all and less")
)

// The sizes that are measured. The reference cannot be filled to the larger in reasonable time.
var (
	tiny       = 10
	small      = 1_000
	large      = 100_000
	many       = 10_000 // namespaces
	agentTurns = 200
	rounds     = 5
)

// The names of what is measured.
const (
	theReference = "Recall"
	onSQLite     = "SQLite"
	onPostgreSQL = "PostgreSQL"
	wholeDoor    = "whole door, SQLite"
)

// TestSpeed measures; it never fails for a figure.
func TestSpeed(t *testing.T) {
	if !*speed {
		t.Log("give -speed to measure")
		return
	}
	if *quick {
		small, large, many, agentTurns, rounds = 100, 2_000, 100, 20, 2
	}
	m := newMachine(t)
	systems := startSystems(t)
	for _, s := range systems {
		fillSystem(t, s)
		t.Logf("%s is filled", s)
	}
	var all results
	for _, o := range operations {
		for _, clients := range []int{1, manyClients} {
			all = append(all, measure(t, m, systems, o, clients)...)
			t.Logf("%s is measured with %d clients", o.name, clients)
		}
	}
	all.print()
	fmt.Printf("Memory after it all: %s %d MB with its database, sallyport %d MB on SQLite and %d MB on PostgreSQL, PostgreSQL itself %d MB.\n\n",
		theReference, m.memoryOfOthers(t), memoryOf(t, systems, onSQLite), memoryOf(t, systems, onPostgreSQL), m.memoryOfPostgres(t))
	all.printWanted()
	fmt.Println(m.verdict())
}

// statement is the nth belief: ten values of each pair; "tool" in all, "even" in half, "group7" in every 97th, "number7" in one.
func statement(n int) (subject, predicate, value string) {
	parity := "odd"
	if n%2 == 0 {
		parity = "even"
	}
	return fmt.Sprintf("subject%d", n/10), "uses_technology", fmt.Sprintf("%s tool number%d of group%d", parity, n, n%97)
}

func rememberBody(n int) object {
	subject, predicate, value := statement(n)
	return object{"subject": subject, "predicate": predicate, "value": value}
}

// What is measured.
const (
	remember   = "remember"
	exact      = "recall exact"
	rareWord   = "recall by a rare word"
	commonWord = "recall by a common word"
	someWords  = "recall by several words"
	resume     = "agent_resume of many turns"
)

// Reads come first, since a write adds to what they read.
var operations = []operation{
	{exact, func(s *system, _, n int) (time.Duration, error) {
		subject, predicate, _ := statement(n * 7919 % s.size)
		if s.namespaces > 1 {
			subject, predicate, _ = statement(0)
		}
		return s.post(n, "/v1/recall", object{"subject": subject, "predicate": predicate})
	}},
	{rareWord, func(s *system, _, n int) (time.Duration, error) {
		return s.post(n, "/v1/recall", object{"query": fmt.Sprintf("which is number%d", n*7919%s.size), "limit": 5})
	}},
	{commonWord, func(s *system, _, n int) (time.Duration, error) {
		return s.post(n, "/v1/recall", object{"query": "what is even", "limit": 5})
	}},
	{someWords, func(s *system, _, n int) (time.Duration, error) {
		return s.post(n, "/v1/recall", object{"query": fmt.Sprintf("which even tool of group%d has number%d", n%97, n*7919%s.size), "limit": 5})
	}},
	{resume, func(s *system, client, n int) (time.Duration, error) {
		id := object{"agent_id": fmt.Sprintf("agent%d", client)}
		took, err := s.tool(n, "agent_resume", id)
		if err == nil {
			_, err = s.tool(n, "agent_release", id)
		}
		return took, err
	}},
	{remember, func(s *system, _, n int) (time.Duration, error) {
		return s.post(n, "/v1/remember", object{"subject": fmt.Sprintf("new%d", n/10), "predicate": "uses_technology", "value": fmt.Sprintf("new thing%d", n)})
	}},
}

// measured says whether an operation is one of those that a system is there for.
func (s *system) measured(operation string) bool {
	switch {
	case s.namespaces > 1:
		return operation == exact || operation == remember
	case s.size == tiny:
		return operation == exact
	}
	return true
}

// printWanted prints what is wanted beside what was measured.
func (all results) printWanted() {
	fmt.Println("| wanted | | measured | |\n|---|---|---|---|")
	at := func(operation string, clients int, name string, size, namespaces int) *result {
		return all.find(operation, clients, name, size, namespaces)
	}
	for _, w := range []struct {
		operation string
		times     float64
	}{{exact, 100}, {rareWord, 50}, {commonWord, 50}, {someWords, 50}, {remember, 20}} {
		ratio := at(w.operation, 1, onSQLite, small, 1).ratio(at(w.operation, 1, theReference, small, 1), throughput)
		wanted(fmt.Sprintf("%s, SQLite, throughput beside Recall's, %d beliefs", w.operation, small), ratio, w.times, atLeast, "%.0f")
	}
	for _, engine := range []string{onSQLite, onPostgreSQL} {
		for _, o := range []string{exact, remember} {
			of := at(o, 1, engine, small, 1)
			wanted(fmt.Sprintf("%s, %s, p50 at %d beliefs to that at %d", o, engine, large, small), at(o, 1, engine, large, 1).ratio(of, p50), flat, atMost, "%.2f")
			wanted(fmt.Sprintf("%s, %s, p50 in %d namespaces to that in one", o, engine, many), at(o, 1, engine, small, many).ratio(of, p50), flat, atMost, "%.2f")
		}
		for _, o := range []string{rareWord, commonWord, someWords} {
			wanted(fmt.Sprintf("%s, %s, p50 at %d beliefs to that at %d", o, engine, large, small), at(o, 1, engine, large, 1).ratio(at(o, 1, engine, small, 1), p50), 3, atMost, "%.2f")
		}
	}
	for _, o := range []string{exact, rareWord, commonWord, someWords, resume} {
		for _, size := range []int{small, large} {
			ratio := at(o, 1, onPostgreSQL, size, 1).ratio(at(o, 1, onSQLite, size, 1), p50)
			wanted(fmt.Sprintf("%s, p50 on PostgreSQL to that on SQLite, %d beliefs", o, size), ratio, 3, atMost, "%.2f")
		}
	}
	door := at(exact, 1, wholeDoor, tiny, 1)
	wanted("recall exact through the whole door, p50 in ms", door.spread(p50), 1, atMost, "%.2f")
	wanted("the same, p50 to that of Recall without a door", door.ratio(at(exact, 1, theReference, tiny, 1), p50), 1, atMost, "%.2f")
	for _, r := range all {
		if r.clients == manyClients && r.system.name != theReference {
			wanted(fmt.Sprintf("%s, %s, p99 in ms, %d clients", r.operation, r.system, r.clients), r.spread(p99), 10, atMost, "%.1f")
		}
	}
	fmt.Println()
}
