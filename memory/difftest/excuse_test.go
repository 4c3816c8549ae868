package difftest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sallyport/memory/belief"
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

// ofTexts is ofRecall on the text surface.
func (c *comparison) ofTexts(asked object) (verdict, string) {
	reference, ours := parsedObject(c.reference)["memories"], parsedObject(c.ours)["memories"]
	if question, _ := asked["question"].(string); question != "" {
		return unlessFound(question, reference, ours)
	}
	if inOrder(ours, asked["since"] != nil) {
		order(reference, "since", "text")
		order(ours, "since", "text")
	}
	return c.excused()
}

// unlessFound is same if all that we find the reference finds too, and we find what holds a word of the question.
func unlessFound(question string, reference, ours any) (verdict, string) {
	if contained(ours, reference) && contained(naming(question, reference), ours) {
		return same, ""
	}
	return differs, ""
}

// ofRecall: "a query returns the best 20 beliefs however unlike"; a query beside a subject or a predicate puts in order.
// "elsewhere leaves some values out". "values of a pair come in the order in which they were first stated", which shows
// where a limit cuts.
func (c *comparison) ofRecall(asked object) (verdict, string) {
	if _, texts := c.ours.(object); texts {
		return c.ofTexts(asked)
	}
	// "a query as of a time before user has a name finds the later name".
	if asOf, _ := asked["as_of"].(string); asOf != "" {
		c.reference = withoutLaterName(c.reference, asOf)
	}
	complete(c.reference, c.ours)
	question, _ := asked["query"].(string)
	switch {
	case question != "" && cmpOr(asked["subject"], "") == "" && cmpOr(asked["predicate"], "") == "":
		return unlessFound(question, c.reference, c.ours)
	case question != "":
		if contained(c.ours, c.reference) && contained(c.reference, c.ours) {
			return same, ""
		}
	case asked["limit"] != nil && asked["limit"] != 1000.0 && length(c.reference) == length(c.ours):
		return c.cut(asked)
	}
	return c.excused()
}

// withoutLaterName drops the name of the user where it was stated after the instant asked about.
func withoutLaterName(rows any, asOf string) any {
	out := []any{}
	for _, row := range list(rows) {
		at, _ := row["observed_at"].(string)
		if row["subject"] == "user" && row["predicate"] == "name" && (at == "now" || at > asOf) {
			continue
		}
		out = append(out, row)
	}
	return out
}

// inOrder says whether texts come in order of time.
func inOrder(rows any, newestFirst bool) bool {
	return slices.IsSortedFunc(list(rows), func(a, b object) int {
		if newestFirst {
			a, b = b, a
		}
		return cmp.Compare(sortable("since", a), sortable("since", b))
	})
}

// cut looks at everything that two answers were cut from.
func (c *comparison) cut(asked object) (verdict, string) {
	whole := maps.Clone(asked)
	whole["limit"] = 1000
	q := made("recall", whole)
	reference, ours := c.askReference(q), c.askOurs(q)
	if asOf, _ := asked["as_of"].(string); asOf != "" {
		reference = withoutLaterName(reference, asOf)
	}
	complete(reference, ours)
	all, _ := ours.([]any)
	frozen := func(rows any) any { return withoutIDs(parsed(shown(rows))) }
	if shown(withoutIDs(reference)) == shown(withoutIDs(ours)) &&
		contained(frozen(c.reference), withoutIDs(reference)) && shown(frozen(c.ours)) == shown(all[:length(c.ours)]) {
		return same, ""
	}
	return differs, ""
}

// ofExplain: as a query, and "explain gives a note the history of all notes of its subject".
func (c *comparison) ofExplain(asked object) (verdict, string) {
	question, _ := asked["question"].(string)
	reference, ours := withoutNoteHistory(c.reference), withoutNoteHistory(c.ours)
	found := ours
	const most = 20
	if length(reference) == most { // notes come last, after whatever is unlike
		found = withoutNotes(ours)
	}
	if contained(found, reference) && contained(naming(question, reference), ours) {
		return same, ""
	}
	return differs, ""
}

func withoutNotes(rows any) any {
	out := []any{}
	for _, row := range list(rows) {
		if row["predicate"] != "note" {
			out = append(out, row)
		}
	}
	return out
}

func (c *comparison) ofRemember(asked object) (verdict, string) {
	// "related, when more than eight are: the nearest in wording".
	c.excuseRelated(asked)
	if c.equal() {
		return same, ""
	}
	if sameInstant(c.ours) && !sameInstant(c.reference) {
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

// complete puts our values elsewhere in the place of the reference's where those are some of ours.
func complete(reference, ours any) {
	own := map[string]object{}
	key := func(row object) string { return shown([]any{row["subject"], row["predicate"], row["value"]}) }
	for _, row := range list(ours) {
		own[key(row)] = row
	}
	for _, row := range list(reference) {
		if o := own[key(row)]; o["elsewhere"] != nil && contained(row["elsewhere"], o["elsewhere"]) {
			row["elsewhere"] = o["elsewhere"]
		}
	}
}

// naming keeps the rows that hold a word of a question, spelled the same.
func naming(question string, rows any) any {
	out := []any{}
	for _, row := range list(rows) {
		words := belief.Words(strings.Join([]string{shown(row["subject"]), shown(row["predicate"]), shown(row["value"]), shown(row["text"])}, " "))
		if slices.ContainsFunc(belief.QueryWords(belief.Words(question)), func(w string) bool { return slices.Contains(words, w) }) {
			out = append(out, row)
		}
	}
	return out
}

func withoutIDs(v any) any {
	eachObject(v, func(o object) {
		for member := range isID {
			delete(o, member)
		}
	})
	return v
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

// sameInstant says whether a statement ended another of its own instant.
func sameInstant(remembered any) bool {
	found := false
	eachObject(remembered, func(o object) {
		stored, _ := o["stored"].(object)
		for _, ended := range list(o["superseded"]) {
			found = found || ended["observed_at"] == stored["observed_at"] && stored["observed_at"] != "now"
		}
	})
	return found
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

func withoutNoteHistory(rows any) any {
	for _, row := range list(rows) {
		if row["predicate"] == "note" {
			delete(row, "history")
		}
	}
	return rows
}
