package agent

import (
	"strings"

	"sallyport/memory/refusal"
)

// Bounds of what a caller gives, in bytes unless they say otherwise.
const (
	MaxID        = 128
	MaxMessageID = 256
	MaxBrief     = 4096
	MaxTool      = 128
	MaxHolder    = 200 // characters
	MaxContent   = 1 << 20
)

// What a resume takes when the caller names nothing, in tokens.
const (
	DefaultBudget    = 8000
	DefaultThreshold = 2000
)

// CheckID refuses what is not an id: what names what, "agent_id" for example.
func CheckID(what, id string) error {
	if id == "" {
		return refusal.New("%s is missing", what)
	}
	if len(id) > MaxID {
		return refusal.New("%s has %d bytes; at most %d are allowed", what, len(id), MaxID)
	}
	if strings.Trim(id, ".") == "" {
		return refusal.New("%s is nothing but dots; use a letter or digit too", what)
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return refusal.New("%s %q: use only letters, digits and . _ -", what, id)
		}
	}
	return nil
}

// CheckRole refuses a role that no turn has.
func CheckRole(role string) error {
	switch role {
	case "system", "user", "assistant", "tool":
		return nil
	case "":
		return refusal.New("role is missing: system, user, assistant or tool")
	}
	return refusal.New("role %q is none of system, user, assistant, tool", role)
}

// pointerFields are the fields of which each type of pointer needs at least one.
var pointerFields = map[string][]string{
	"git_ref":  {"branch", "sha"},
	"object":   {"uri"},
	"env":      {"image", "lockfile_hash", "setup"},
	"external": {"id", "url"},
	"process":  {"command"},
}

// CheckPointer refuses a pointer that leads nowhere.
func CheckPointer(p Pointer) error {
	if err := CheckID("name", p.Name); err != nil {
		return err
	}
	needed, ok := pointerFields[p.Type]
	if !ok {
		return refusal.New("type %q is none of git_ref, object, env, external, process", p.Type)
	}
	for _, f := range needed {
		if p.Fields[f] != "" {
			return nil
		}
	}
	return refusal.New("a pointer of type %s needs the field %s", p.Type, strings.Join(needed, " or "))
}

// CheckClass refuses a class that no action has.
func CheckClass(c Class) error {
	switch c {
	case Pure, Idempotent, External:
		return nil
	}
	return refusal.New("class %q is none of pure, idempotent, external", c)
}

// CheckEnd refuses a status that no action can be given.
func CheckEnd(s Status) error {
	switch s {
	case Done, Failed, Abandoned, Unknown:
		return nil
	}
	return refusal.New("status %q is none of done, failed, abandoned, unknown", s)
}
