package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"sallyport/memory/refusal"
)

// arguments are the members of a call's arguments.
type arguments struct {
	raw     json.RawMessage
	members map[string]json.RawMessage
}

// parseArguments reads a JSON object; nothing at all and null count as an empty one.
func parseArguments(raw []byte) (arguments, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	a := arguments{raw: raw}
	if err := json.Unmarshal(raw, &a.members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return a, refusal.Shape("the arguments are not valid JSON: %s", syntax)
		}
		return a, refusal.Shape("the arguments are not a JSON object")
	}
	return a, nil
}

// text returns a member that may hold a string; the name is matched as encoding/json matches it.
func (a arguments) text(name string) (value string, given bool) {
	for member, raw := range a.members {
		if !strings.EqualFold(member, name) || string(raw) == "null" {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw) // no string: it names nothing that exists
		}
		if value = s; value != "" {
			return value, true
		}
	}
	return "", false
}

// into reads the arguments of one operation. A strict operation refuses members that it does not know, and tells a wrong
// type as a wrong shape.
func into[T any](a arguments, strict bool) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(a.raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&v); err != nil {
		refuse := refusal.New
		if strict {
			refuse = refusal.Shape
		}
		return v, refuse("%s", said(err))
	}
	return v, nil
}

// said tells what is wrong with arguments in JSON's words instead of Go's.
func said(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		name := strings.TrimPrefix(wrong.Field, "AgentArgs.") // the embedded struct is nobody's business
		if name == "" {
			name = "the arguments"
		}
		return fmt.Sprintf("%s has to be %s, not a %s", name, jsonName(wrong.Type), wrong.Value)
	}
	if text, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "there is no argument " + text
	}
	return "the arguments cannot be read: " + strings.TrimPrefix(err.Error(), "json: ")
}

func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	case reflect.Pointer:
		return jsonName(t.Elem())
	}
	return "an object"
}
