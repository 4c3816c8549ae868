package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sallyport/memory/refusal"
)

// ParsePatch reads a change to a working state. A member that is null is cleared, and one that is not given stays. What
// the server writes itself (version, last_milestone and so on) and what it does not know is refused by name.
func ParsePatch(members map[string]json.RawMessage) (Patch, error) {
	var p Patch
	texts := map[string]**string{"goal": &p.Goal, "progress": &p.Progress, "focus": &p.Focus, "notes": &p.Notes}
	lists := map[string]**[]string{"plan": &p.Plan, "decisions": &p.Decisions, "open_questions": &p.OpenQuestions}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		raw := members[name]
		var err error
		switch {
		case texts[name] != nil:
			err = clearing(raw, texts[name], name, "a string")
		case lists[name] != nil:
			err = clearing(raw, lists[name], name, "an array of strings")
		case name == "step":
			err = clearing(raw, &p.Step, name, "a whole number")
		default:
			err = refusal.New("update_working_state does not take %q; it takes %s and step", name,
				strings.Join(slices.Concat(slices.Sorted(maps.Keys(texts)), slices.Sorted(maps.Keys(lists))), ", "))
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// clearing reads a member; null is its zero value.
func clearing[T any](raw json.RawMessage, into **T, name, wanted string) error {
	v := new(T)
	if string(raw) != "null" {
		if err := json.Unmarshal(raw, v); err != nil {
			return refusal.New("%s is not %s", name, wanted)
		}
	}
	*into = v
	return nil
}
