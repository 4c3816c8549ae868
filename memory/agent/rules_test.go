package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/memory/agent"
)

func TestCheckID(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, "A_1.b-": true, strings.Repeat("x", 128): true, "..a": true,
		"": false, ".": false, "..": false, "a b": false, "a/b": false, "a:b": false, "é": false, strings.Repeat("x", 129): false, "a\n": false,
	} {
		if err := agent.CheckID("agent_id", id); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestCheckPointer(t *testing.T) {
	for _, c := range []struct {
		kind, field, value string
		good               bool
	}{
		{"git_ref", "branch", "b", true},
		{"git_ref", "sha", "s", true},
		{"git_ref", "repo", "r", false},
		{"object", "uri", "u", true},
		{"object", "uri", "", false},
		{"object", "zzz", "u", false},
		{"env", "image", "i", true},
		{"env", "lockfile_hash", "h", true},
		{"env", "setup", "s", true},
		{"external", "id", "i", true},
		{"external", "url", "u", true},
		{"external", "kind", "k", false},
		{"process", "command", "c", true},
		{"process", "port", "80", false},
		{"bogus", "uri", "u", false},
	} {
		err := agent.CheckPointer(agent.Pointer{Name: "p", Type: c.kind, Fields: map[string]string{c.field: c.value}})
		if (err == nil) != c.good {
			t.Errorf("%s with %s=%q: %v", c.kind, c.field, c.value, err)
		}
	}
}

func TestParsePatch(t *testing.T) {
	parse := func(raw string) (agent.Patch, error) {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		return agent.ParsePatch(m)
	}
	for _, raw := range []string{
		`{"goal":5}`, `{"plan":"x"}`, `{"plan":[1]}`, `{"step":1.5}`, `{"step":"1"}`, `{"bogus":1}`, `{"version":5}`,
		`{"last_milestone":"x"}`, `{"turn_seq":1}`, `{"action_seq":1}`, `{"updated_at":"x"}`, `{"Goal":"x"}`,
	} {
		if _, err := parse(raw); err == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
	full := agent.State{Goal: "g", Plan: []string{"p"}, Progress: "h", Focus: "f", Decisions: []string{"d"}, OpenQuestions: []string{"q"}, Notes: "n", Step: 3, LastMilestone: "m", Version: 7}
	for _, c := range []struct {
		rule, raw string
		want      agent.State
	}{
		{"what is not given stays", `{}`, full},
		{"what is given takes the place of what was there", `{"goal":"G","step":-1,"plan":["a","b"]}`, func() agent.State {
			s := full
			s.Goal, s.Step, s.Plan = "G", -1, []string{"a", "b"}
			return s
		}()},
		{"empty and null clear", `{"goal":"","notes":null,"plan":[],"decisions":null,"step":null}`, func() agent.State {
			s := full
			s.Goal, s.Notes, s.Plan, s.Decisions, s.Step = "", "", nil, nil, 0
			return s
		}()},
	} {
		t.Run(c.rule, func(t *testing.T) {
			p, err := parse(c.raw)
			if err != nil {
				t.Fatal(err)
			}
			got := full.Next(p, 4, 5, now)
			c.want.Version, c.want.TurnSeq, c.want.ActionSeq, c.want.UpdatedAt = 8, 4, 5, now
			if a, b := asJSON(got), asJSON(c.want); a != b {
				t.Errorf("got  %s\nwant %s", a, b)
			}
		})
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}

func TestTexts(t *testing.T) {
	if n := agent.Tokens("é"); n != 1 {
		t.Errorf("two bytes are %d tokens, want 1", n)
	}
	for n, long := range map[int]bool{8000: false, 8001: true} {
		if agent.TooLong(strings.Repeat("x", n), 2000) != long {
			t.Errorf("%d bytes are too long: %v, want %v", n, !long, long)
		}
	}
	if agent.TooLong(strings.Repeat("x", 1<<20), -1) {
		t.Error("a negative threshold stores a text apart")
	}
	for text, want := range map[string]string{
		strings.Repeat("é", 100):       strings.Repeat("é", 100),
		strings.Repeat("é", 101):       strings.Repeat("é", 100) + "...",
		"a" + strings.Repeat("é", 100): "a" + strings.Repeat("é", 99) + "...",
	} {
		if s := agent.Summarize(text); s != want {
			t.Errorf("200 bytes are shown, and no half characters: got %q, want %q", s, want)
		}
	}
	if s := agent.Opening("whole", "out-1-1"); !strings.HasPrefix(s, "whole\n") || !strings.Contains(s, "out-1-1") || !strings.Contains(s, "2 tokens") {
		t.Errorf("opening %q", s)
	}
}
