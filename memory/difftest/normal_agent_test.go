package difftest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// briefs are the tools whose answers hold what a search found.
var briefs = map[string]bool{"agent_resume": true, "agent_context": true}

// agentOf is the agent that a step is about, if it is about one.
func agentOf(s step) string {
	var asked object
	_ = json.Unmarshal(s.Body, &asked) // a step is an object
	id, _ := asked["agent_id"].(string)
	return strings.TrimSpace(id)
}

// refusedSentence keeps what clients look for in a refusal.
func refusedSentence(body any) any {
	text, _ := body.(string)
	out := object{"refused": true}
	for _, phrase := range []string{"lease is held", "lease was lost", "lease not acquired", "namespace_mismatch", `tool "no_such_tool"`} {
		if strings.Contains(text, phrase) {
			out["says"] = phrase
		}
	}
	return out
}

// isRef names the members that hold the ref of an output.
var isRef = map[string]bool{"ref": true, "output_ref": true}

var madeUpRef = regexp.MustCompile(`^out-(\d+)-\d+$`)

// madeUp returns the turn that a ref is named for, if it is one that a server made up.
func madeUp(ref string) (turn string, ok bool) {
	if m := madeUpRef.FindStringSubmatch(ref); m != nil {
		return m[1], true
	}
	return "", false
}

// epoch tells epochs from each other, and whether a new one is later than those before: what they count is not promised.
func (n *normal) epoch(epoch int64) string {
	known := n.epochs[n.agent]
	at := slices.Index(known, epoch)
	if at < 0 {
		at = len(known)
		known = append(known, epoch)
		n.epochs[n.agent] = known
	}
	if at > 0 && known[at-1] > epoch {
		return fmt.Sprintf("epoch %d, which is earlier than the one before", at)
	}
	return fmt.Sprintf("epoch %d", at)
}

// stored adds to the answer whether the ref that the server made up for an output was free.
func (n *normal) stored(s step, body any) {
	o, _ := body.(object)
	var asked object
	_ = json.Unmarshal(s.Body, &asked) // a step is an object
	ref, _ := o["output_ref"].(string)
	if s.Op == "store_output" {
		ref, _ = o["ref"].(string)
	}
	if ref == "" || s.Op != "store_output" && s.Op != "record_turn" {
		return
	}
	key := n.agent + " " + ref
	if asked["ref"] == nil {
		o["was free"] = !n.made[key]
	}
	n.made[key] = true
}

// arrangeAgent takes away what each server words in its own way.
func arrangeAgent(body any) {
	eachObject(body, func(o object) {
		for _, member := range []string{"content", "args", "result"} {
			ref, _ := o[member+"_ref"].(string)
			if member == "content" {
				ref, _ = o["output_ref"].(string)
			}
			if text, _ := o[member].(string); ref != "" {
				o[member] = opened(text, ref)
			}
		}
		if text, _ := o["resolution"].(string); text != "" && !strings.HasPrefix(text, "resolution-") {
			o["resolution"] = "a sentence"
		}
		if text, ok := o["briefing"].(string); ok {
			const bytesPerToken = 4
			if tokens, given := o["tokens"].(float64); given {
				o["tokens"] = int(tokens) == (len(text)+bytesPerToken-1)/bytesPerToken
			}
			o["briefing"] = told(text, o)
		}
	})
}

var tokenCount = regexp.MustCompile(`\b\d+ `)

// opened is the beginning of a text that is stored apart, and how many tokens it has, without the sentence that says so.
func opened(text, ref string) any {
	at := strings.LastIndex(text, "\n")
	if at < 0 || !strings.Contains(text[at:], ref) {
		return "does not name the output: " + text
	}
	return text[:at] + " ... of tokens " + tokenCount.FindString(text[at:])
}

var telling = regexp.MustCompile(`[0-9a-f]{32}|\b[a-z]+-\d[a-z0-9-]*|#\d+`)

// told lists what a briefing tells, in its order, without the sentences around it. The keys of actions are told by their
// numbers.
func told(briefing string, o object) any {
	for _, a := range list(o["pending_actions"]) {
		if key, _ := a["key"].(string); key != "" {
			briefing = strings.ReplaceAll(briefing, key, fmt.Sprintf(" key-%v ", a["seq"]))
		}
	}
	words := slices.Compact(telling.FindAllString(briefing, -1))
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
