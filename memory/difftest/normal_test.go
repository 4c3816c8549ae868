package difftest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// normal brings the answers of one server, in one sequence, into a form that both servers' can be compared in: ids become
// placeholders, in the order in which they first appear, so that it still shows which event an answer speaks of.
type normal struct {
	ids    map[string]string
	made   map[string]bool    // outputs that were stored, by agent and ref
	agent  string             // that the answer is about
	epochs map[string][]int64 // by agent, in the order in which they first appeared
	frozen bool               // an id that is not known yet gets no placeholder
}

func newNormal() *normal {
	return &normal{ids: map[string]string{}, made: map[string]bool{}, epochs: map[string][]int64{}}
}

// answer returns the answer to a step in its comparable form.
func (n *normal) answer(s step, a answer) any {
	if a.status == refusedByTool {
		return refusedSentence(a.body)
	}
	if a.status != 200 {
		e, _ := a.body.(object)["error"].(object)
		return object{"status": float64(a.status), "code": e["code"], "says something": e["message"] != ""}
	}
	if s.Tool {
		n.agent = agentOf(s)
		n.stored(s, a.body)
	}
	// What a question finds may differ on purpose, so placeholders must not depend on it.
	n.frozen = s.Op == "explain" || s.Tool && briefs[s.Op] || s.Op == "recall" && bytes.Contains(s.Body, []byte(`"query"`))
	return n.clean(arranged(s, a.body), "")
}

// arranged puts what has no promised order into one, and takes away what each server words in its own way.
func arranged(s step, body any) any {
	var asked object
	_ = json.Unmarshal(s.Body, &asked) // a step is an object
	if s.Tool {
		arrangeAgent(body)
		return body
	}
	if o, _ := body.(object); s.Op == "remember" && o["note"] != nil {
		o["note"] = "a sentence" // on the text surface
	}
	switch s.Op {
	case "recall":
		if asked["query"] == nil || asked["subject"] != nil && asked["predicate"] != nil {
			order(body, "predicate", "subject", "observed_at")
		}
	case "history":
		arrangeHistory(body)
	case "predicates":
		for _, p := range list(body) {
			if p["description"] != "as described" {
				p["description"] = ""
			}
		}
	case "timeline":
		for _, step := range list(body.(object)["steps"]) {
			if words, _ := step["statement"].(string); strings.HasPrefix(words, "took back ") || strings.HasPrefix(words, "withdrew ") {
				step["statement"] = "a retraction"
			}
		}
	case "explain":
		order(body, "predicate", "subject", "value")
		for _, row := range list(body) {
			arrangeHistory(row["history"])
			for _, rule := range list(row["rules"]) {
				delete(rule, "change")
				delete(rule, "description")
			}
		}
	case "remember":
		eachObject(body, func(o object) { order(o["related"], "predicate", "value") })
	}
	eachObject(body, func(o object) {
		order(o["elsewhere"], "predicate", "value")
	})
	return body
}

// arrangeHistory orders events that stand at one instant: a statement, then the retractions that it causes.
func arrangeHistory(events any) {
	rows, _ := events.([]any)
	slices.SortStableFunc(rows, func(a, b any) int {
		x, y := a.(object), b.(object)
		return cmp.Or(cmp.Compare(sortable("observed_at", x), sortable("observed_at", y)), compareBool(x["retraction"] == true, y["retraction"] == true))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// order sorts rows by members, notes last, and leaves the order of those that are equal in them.
func order(rows any, members ...string) {
	of, _ := rows.([]any)
	slices.SortStableFunc(of, func(a, b any) int {
		x, y := a.(object), b.(object)
		if c := compareBool(x["predicate"] == "note", y["predicate"] == "note"); c != 0 {
			return c
		}
		for _, m := range members {
			if c := cmp.Compare(sortable(m, x), sortable(m, y)); c != 0 {
				return c
			}
		}
		return 0
	})
}

// sortable is a member's text; that of instants sorts as they do.
func sortable(member string, of object) string {
	text := fmt.Sprint(of[member])
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && isInstant[member] {
		return t.UTC().Format("2006-01-02T15:04:05.000000000")
	}
	return text
}

func list(v any) []object {
	items, _ := v.([]any)
	out := make([]object, 0, len(items))
	for _, item := range items {
		if o, ok := item.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func eachObject(v any, do func(object)) {
	switch v := v.(type) {
	case object:
		do(v)
		for _, m := range v {
			eachObject(m, do)
		}
	case []any:
		for _, m := range v {
			eachObject(m, do)
		}
	}
}

// clean replaces ids and the instants of the run.
func (n *normal) clean(v any, member string) any {
	switch v := v.(type) {
	case object:
		names := make([]string, 0, len(v))
		for k := range v {
			names = append(names, k)
		}
		slices.Sort(names) // ids get their placeholders in an order that does not change from run to run
		for _, k := range names {
			v[k] = n.clean(v[k], k)
		}
		if epoch, ok := v["epoch"].(float64); ok {
			v["epoch"] = n.epoch(int64(epoch))
		}
		return v
	case []any:
		for i := range v {
			v[i] = n.clean(v[i], member)
		}
		return v
	case float64:
		if member == "days_ago" && v > 300 {
			return "many" // it may be midnight between two answers
		}
	case string:
		if isID[member] && v != "" {
			if n.ids[v] == "" && n.frozen {
				return "an id"
			}
			if n.ids[v] == "" {
				n.ids[v] = fmt.Sprintf("e%d", len(n.ids)+1)
			}
			return n.ids[v]
		}
		if turn, ok := madeUp(v); ok && (isRef[member] || member == "briefing") {
			if n.ids[v] == "" {
				n.ids[v] = fmt.Sprintf("out-%s-e%d", turn, len(n.ids)+1)
			}
			return n.ids[v]
		}
		if isInstant[member] {
			return instant(v)
		}
	}
	return v
}

var (
	isID      = map[string]bool{"id": true, "event_id": true, "evidence_id": true, "replaced_by": true, "key": true}
	isInstant = map[string]bool{
		"observed_at": true, "at": true, "stated_at": true, "started_at": true, "ended_at": true, "updated_at": true,
	}
)

// instant drops the nanoseconds that decide between two statements of one instant.
func instant(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "no instant: " + text
	}
	if t.Year() > 2024 { //nolint:mnd // the year of the data
		return "now"
	}
	return t.Truncate(time.Second).Format(time.RFC3339)
}

func shown(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// parsed undoes shown: what is compared may be changed by it.
func parsed(text string) any {
	var v any
	_ = json.Unmarshal([]byte(text), &v) // shown wrote it
	return v
}

// difference finds the innermost member that holds all that differs.
func difference(path string, a, b any) (where string, inA, inB any) {
	x, isObject := a.(object)
	y, both := b.(object)
	if isObject && both {
		names := map[string]bool{}
		for _, o := range []object{x, y} {
			for k := range o {
				if shown(x[k]) != shown(y[k]) {
					names[k] = true
				}
			}
		}
		for k := range names {
			if len(names) == 1 {
				return difference(path+"."+k, x[k], y[k])
			}
		}
	}
	u, isList := a.([]any)
	v, both := b.([]any)
	if isList && both && len(u) == len(v) {
		for i := range u {
			if shown(u[i]) != shown(v[i]) {
				return difference(fmt.Sprintf("%s[%d]", path, i), u[i], v[i])
			}
		}
	}
	return path, a, b
}
