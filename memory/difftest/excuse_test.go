package difftest

import (
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

// compare compares two answers in their comparable form. Each excuse names the row of docs/compatibility.md it is for.
func compare(s step, reference, ours any) verdict {
	if shown(reference) == shown(ours) {
		return same
	}
	var asked object
	_ = json.Unmarshal(s.Body, &asked) // a step is an object
	switch s.Op {
	case "recall":
		// "a query returns the best 20 beliefs however unlike": a query puts in order, and alone it selects.
		if asked["query"] != nil && asked["subject"] == nil && asked["predicate"] == nil && contained(ours, reference) {
			return same
		}
		if asked["query"] != nil && contained(ours, reference) && contained(reference, ours) {
			return same
		}
		// "elsewhere leaves some values out".
		if completed(reference, ours) && shown(reference) == shown(ours) {
			return same
		}
		// "the values of a pair come in the order in which they were first stated", which shows where a limit cuts.
		if asked["limit"] != 1000.0 && length(ours) == length(reference) {
			return same
		}
	case "explain":
		// The same, and "explain gives a note the history of all notes of its subject".
		if contained(withoutNoteHistory(ours), withoutNoteHistory(reference)) {
			return same
		}
	case "remember":
		// The eight related beliefs that are told, of more than eight, are those nearest in wording to each server.
		if tooMany(reference) && tooMany(ours) {
			delete(reference.(object), "related")
			delete(ours.(object), "related")
			if shown(reference) == shown(ours) {
				return same
			}
		}
		// "what is stated at the same instant cannot be replaced".
		if sameInstant(ours) && !sameInstant(reference) {
			return parted
		}
		// "a historical value that is restated is known, whatever it excludes".
		r, _ := reference.(object)
		o, _ := ours.(object)
		if r["already_known"] == true && o["already_known"] == nil && o["superseded"] != nil && historical[asked["predicate"]] {
			return parted
		}
	}
	return differs
}

// completed puts our values elsewhere in the place of the reference's where those are some of ours.
func completed(reference, ours any) bool {
	theirs, own := list(reference), list(ours)
	if len(theirs) != len(own) {
		return false
	}
	for i, row := range theirs {
		if own[i]["elsewhere"] != nil && contained(row["elsewhere"], own[i]["elsewhere"]) {
			row["elsewhere"] = own[i]["elsewhere"]
		}
	}
	return true
}

func length(rows any) int {
	all, _ := rows.([]any)
	return len(all)
}

func tooMany(remembered any) bool {
	const most = 8
	o, _ := remembered.(object)
	return length(o["related"]) == most
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
