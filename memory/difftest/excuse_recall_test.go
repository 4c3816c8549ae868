package difftest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sallyport/memory/belief"
)

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

func withoutNoteHistory(rows any) any {
	for _, row := range list(rows) {
		if row["predicate"] == "note" {
			delete(row, "history")
		}
	}
	return rows
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
