package difftest

import (
	"bytes"
	"encoding/json"
	"slices"
)

// verdict is what a comparison of two answers comes to.
type verdict int

const (
	same verdict = iota
	differs
	parted // they differ on purpose, and from here on the two memories hold different things
)

// comparison is of two answers in their comparable form. Where more has to be known to judge it, it asks.
type comparison struct {
	step                  step
	past                  []step // what was asked before
	reference, ours       any
	askReference, askOurs func(step) any
}

// judge compares. Each excuse names the row of docs/compatibility.md that it is for.
func (c *comparison) judge() (verdict, string) {
	if c.equal() {
		return same, ""
	}
	var asked object
	_ = json.Unmarshal(c.step.Body, &asked) // numbers that Go cannot read are refused by both
	if v, why := c.oddValue(asked); v != differs {
		return v, why
	}
	// "what a statement ends and names is told twice".
	if toldOnce(c.reference); c.equal() {
		return same, ""
	}
	switch {
	case c.step.Tool:
		return c.ofAgent(asked)
	case c.step.Op == "recall":
		return c.ofRecall(asked)
	case c.step.Op == "explain":
		return c.ofExplain(asked)
	case c.step.Op == "remember":
		return c.ofRemember(asked)
	case c.step.Op == "timeline" && states(soon, c.past):
		// "the now of a timeline has what is dated ahead".
		r, o := parsedObject(c.reference), parsedObject(c.ours)
		delete(r, "now")
		delete(o, "now")
		return c.excused()
	}
	return differs, ""
}

func (c *comparison) equal() bool { return shown(c.reference) == shown(c.ours) }

// excused is same if the two are equal after all.
func (c *comparison) excused() (verdict, string) {
	if c.equal() {
		return same, ""
	}
	return differs, ""
}

const (
	minusZero = "`-0` is another value than `0`"
	yearOne   = "an instant in the year 1 means now"
)

// oddValue excuses values that the reference mistakes for others.
func (c *comparison) oddValue(asked object) (verdict, string) {
	if states("-0", append(slices.Clone(c.past), c.step)) {
		return parted, minusZero
	}
	for _, member := range []string{"as_of", "observed_after", "observed_before", "from", "to", "since"} {
		if asked[member] == "0001-01-01T00:00:00Z" {
			return same, yearOne
		}
	}
	if states("0001-01-01T00:00:00Z", append(slices.Clone(c.past), c.step)) {
		return parted, yearOne
	}
	return differs, ""
}

// toldOnce takes away what a statement is said to have ended a second time.
func toldOnce(v any) {
	eachObject(v, func(o object) {
		for _, member := range []string{"superseded", "replaced"} {
			ended, _ := o[member].([]any)
			seen := map[string]bool{}
			once := []any{}
			for _, row := range list(ended) {
				if id := shown([]any{row["event_id"], row["value"]}); !seen[id] {
					seen[id] = true
					once = append(once, row)
				}
			}
			if len(once) < len(ended) {
				o[member] = once
			}
		}
	})
}

// states says whether a step gives a value, which is a number or a word that stands for an instant.
func states(value string, steps []step) bool {
	return slices.ContainsFunc(steps, func(s step) bool {
		return bytes.Contains(s.Body, []byte(`:`+value+`,`)) || bytes.Contains(s.Body, []byte(`:`+value+`}`)) || bytes.Contains(s.Body, []byte(`"`+value+`"`))
	})
}

func (c *comparison) ofRemember(asked object) (verdict, string) {
	// "related, when more than eight are: the nearest in wording".
	c.excuseRelated(asked)
	if c.equal() {
		return same, ""
	}
	if sameInstant(c.ours) > sameInstant(c.reference) {
		return parted, "what is stated at the same instant cannot be replaced"
	}
	r, o := parsedObject(c.reference), parsedObject(c.ours)
	if r["already_known"] == true && o["already_known"] == nil && o["superseded"] != nil && historical[asked["predicate"]] {
		return parted, "a historical value that is restated is known, whatever it excludes"
	}
	return differs, ""
}

// excuseRelated takes the related beliefs away if there are more than are told, and both tell some of the subject's.
func (c *comparison) excuseRelated(asked object) {
	const most = 8
	r, o := parsedObject(c.reference), parsedObject(c.ours)
	if length(r["related"]) != most || length(o["related"]) != most {
		return
	}
	q := made("recall", object{"subject": asked["subject"], "limit": 1000})
	ofSubject := func(rows, related any) bool {
		some := withoutIDs(parsed(shown(related)))
		for _, b := range append(list(rows), list(some)...) {
			delete(b, "elsewhere")
			delete(b, "days_ago")
		}
		return contained(some, withoutIDs(rows))
	}
	if ofSubject(c.askReference(q), r["related"]) && ofSubject(c.askOurs(q), o["related"]) {
		delete(r, "related")
		delete(o, "related")
	}
}

func parsedObject(v any) object {
	o, _ := v.(object)
	return o
}

func cmpOr(a, b any) any {
	if a != nil {
		return a
	}
	return b
}

func length(rows any) int {
	all, _ := rows.([]any)
	return len(all)
}

// sameInstant counts what statements ended of their own instant.
func sameInstant(remembered any) (n int) {
	eachObject(remembered, func(o object) {
		stored, _ := o["stored"].(object)
		for _, ended := range list(o["superseded"]) {
			if ended["observed_at"] == stored["observed_at"] && stored["observed_at"] != "now" {
				n++
			}
		}
	})
	return n
}

var historical = map[any]bool{"did": true, "gave_away": true, "cancelled": true}

// contained says whether every row of a is one of b.
func contained(a, b any) bool {
	rows, _ := b.([]any)
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = shown(row)
	}
	some, _ := a.([]any)
	return !slices.ContainsFunc(some, func(row any) bool { return !slices.Contains(all, shown(row)) })
}
