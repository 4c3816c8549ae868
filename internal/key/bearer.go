package key

import "bytes"

// Reasons why a request presents no key.
const (
	ReasonNoKey       Reason = "no_key"
	ReasonSeveralKeys Reason = "several_keys"
	ReasonWrongScheme Reason = "wrong_scheme"
)

// FromAuthorization returns the one key that the Authorization lines of a request present, or an *InvalidError. RFC 9110,
// section 11.1: the case of the scheme does not count.
func FromAuthorization(lines []string) (string, error) {
	raw := make([][]byte, 0, len(lines))
	for _, line := range lines {
		raw = append(raw, []byte(line))
	}
	presented, err := FromRawAuthorization(raw)
	return string(presented), err
}

// FromRawAuthorization is FromAuthorization without a copy: what it returns is a piece of the line.
func FromRawAuthorization(lines [][]byte) ([]byte, error) {
	if len(lines) == 0 {
		return nil, &InvalidError{ReasonNoKey}
	}
	if len(lines) > 1 {
		return nil, &InvalidError{ReasonSeveralKeys}
	}
	scheme, rest, _ := bytes.Cut(bytes.TrimSpace(lines[0]), []byte(" "))
	if !bytes.EqualFold(scheme, []byte("Bearer")) {
		return nil, &InvalidError{ReasonWrongScheme}
	}
	rest = bytes.TrimLeft(rest, " ")
	if len(rest) == 0 {
		return nil, &InvalidError{ReasonNoKey}
	}
	if bytes.Contains(rest, []byte(",")) { // two lines that a proxy joined: no key of ours has a comma
		return nil, &InvalidError{ReasonSeveralKeys}
	}
	return rest, nil
}
