package memory

import (
	"encoding/json"
	"errors"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// maxAhead is how far ahead of the server's clock a statement may be dated: the clocks of two machines differ.
const maxAhead = time.Minute

// instant reads an RFC 3339 instant; an empty text is none.
func instant(name, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // an absent instant is no instant and no error
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, refusal.New("%s %q is not an instant: write it like 2026-03-01T15:04:05Z", name, text)
	}
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return nil, refusal.New("%s %q lies outside the years 0 to 9999", name, text)
	}
	return &t, nil
}

// stated reads when a statement is dated: now, if the caller does not say.
func stated(text string, now time.Time) (time.Time, error) {
	t, err := instant("observed_at", text)
	if err != nil || t == nil {
		return now, err
	}
	if t.After(now.Add(maxAhead)) {
		return now, refusal.New("observed_at %s lies ahead of the server's clock, which says %s", text, now.Format(time.RFC3339))
	}
	return *t, nil
}

// valueOf reads a value of the type that the predicate takes; wanted is empty when it takes any.
func valueOf(raw json.RawMessage, predicate string, wanted belief.Type) (belief.Value, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return belief.Value{}, refusal.New("value is missing: give a string, a number or a boolean")
	}
	v, err := belief.ParseValue(raw)
	switch {
	case errors.Is(err, belief.ErrEmpty):
		return v, refusal.New("value is empty")
	case err != nil:
		return v, refusal.New("value: %s", err)
	case wanted != "" && v.Type() != wanted:
		return v, refusal.New("%s takes a %s, and the value given is a %s", predicate, wanted, v.Type())
	}
	return v, nil
}

func oneOf(name, given, byDefault string, allowed ...string) (string, error) {
	if given == "" {
		return byDefault, nil
	}
	for _, a := range allowed {
		if given == a {
			return given, nil
		}
	}
	return "", refusal.New("%s %q is none of %v", name, given, allowed)
}

func kindOf(given string) (string, error) {
	return oneOf("kind", given, belief.Fact, belief.Fact, belief.Preference)
}

func sourceOf(given string) (string, error) {
	return oneOf("source", given, belief.UserStated, belief.UserStated, belief.AgentInferred, belief.ToolResult)
}

func confidence(name string, given *float64, byDefault float64) (float64, error) {
	if given == nil {
		return byDefault, nil
	}
	if !(*given >= 0 && *given <= 1) {
		return 0, refusal.New("%s is %v; it lies between 0 and 1", name, *given)
	}
	return *given, nil
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// OptionalJSON is a member that may be absent, which is not the same as null.
type OptionalJSON struct {
	Given bool
	Raw   json.RawMessage
}

// UnmarshalJSON notes that the member was given.
func (o *OptionalJSON) UnmarshalJSON(raw []byte) error {
	o.Given, o.Raw = true, append(json.RawMessage(nil), raw...)
	return nil
}
