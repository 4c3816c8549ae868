package belief

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Type is the type of a value, fixed for every predicate.
type Type string

// The types that a value may have. The zero Value has none of them: it stands for "every value" in a retraction.
const (
	String  Type = "string"
	Number  Type = "number"
	Boolean Type = "boolean"
)

// Value is a string, an IEEE double or a boolean. The zero Value is no value and is written as null.
type Value struct {
	kind   Type
	text   string
	number float64
	truth  bool
}

// Text returns a string value, trimmed.
func Text(s string) Value { return Value{kind: String, text: strings.TrimSpace(s)} }

// Num returns a number value. Negative zero is zero: nobody who states 0 twice means two things.
func Num(n float64) Value {
	if n == 0 {
		n = 0
	}
	return Value{kind: Number, number: n}
}

// Bool returns a boolean value.
func Bool(b bool) Value { return Value{kind: Boolean, truth: b} }

// ErrNotScalar says that something else than a string, number or boolean was given as a value.
var ErrNotScalar = errors.New("a value is a string, a number or a boolean")

// ErrEmpty says that a string value is empty after trimming.
var ErrEmpty = errors.New("a value must not be empty")

// ErrRange says that a number does not fit an IEEE double.
var ErrRange = errors.New("the number is too large")

// ParseValue reads a value from JSON. It fails with ErrNotScalar, ErrEmpty or ErrRange.
func ParseValue(raw json.RawMessage) (Value, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return Value{}, ErrNotScalar
	}
	switch c := raw[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return Value{}, ErrNotScalar
		}
		v := Text(s)
		if v.text == "" {
			return Value{}, ErrEmpty
		}
		return v, nil
	case c == 't' || c == 'f':
		return Bool(c == 't'), nil
	case c == '-' || c >= '0' && c <= '9':
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return Value{}, ErrRange
		}
		return Num(n), nil
	}
	return Value{}, ErrNotScalar
}

// Type returns the value's type; it is empty for no value.
func (v Value) Type() Type { return v.kind }

// IsZero says whether this is no value.
func (v Value) IsZero() bool { return v.kind == "" }

// Key is equal for two values that count as the same: same type, and strings without regard to case. It has a fixed
// length whatever the value's, so that it can be indexed.
func (v Value) Key() string {
	if v.IsZero() {
		return ""
	}
	said := strings.ToLower(v.text)
	if v.kind != String {
		raw, _ := v.MarshalJSON() // neither NaN nor infinities can be parsed
		said = string(raw)
	}
	sum := sha256.Sum256([]byte(string(v.kind) + "\x00" + said))
	const enough = 16 // 128 bits
	return hex.EncodeToString(sum[:enough])
}

// String returns the value as it stands in a sentence. Numbers are written out, without an exponent.
func (v Value) String() string {
	switch v.kind {
	case String:
		return v.text
	case Number:
		return strconv.FormatFloat(v.number, 'f', -1, 64)
	case Boolean:
		return strconv.FormatBool(v.truth)
	}
	return ""
}

// MarshalJSON writes the scalar, or null for no value.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case String:
		return json.Marshal(v.text)
	case Number:
		return json.Marshal(v.number)
	case Boolean:
		return json.Marshal(v.truth)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*v = Value{}
		return nil
	}
	parsed, err := ParseValue(raw)
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}
