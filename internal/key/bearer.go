package key

import "strings"

// Reasons why a request presents no key.
const (
	ReasonNoKey       Reason = "no_key"
	ReasonSeveralKeys Reason = "several_keys"
	ReasonWrongScheme Reason = "wrong_scheme"
)

// FromAuthorization returns the one key that the Authorization lines of a request present, or an *InvalidError. RFC 9110,
// section 11.1: the case of the scheme does not count.
func FromAuthorization(lines []string) (string, error) {
	if len(lines) == 0 {
		return "", &InvalidError{ReasonNoKey}
	}
	if len(lines) > 1 {
		return "", &InvalidError{ReasonSeveralKeys}
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(lines[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", &InvalidError{ReasonWrongScheme}
	}
	rest = strings.TrimLeft(rest, " ")
	if rest == "" {
		return "", &InvalidError{ReasonNoKey}
	}
	if strings.Contains(rest, ",") { // two lines that a proxy joined: no key of ours has a comma
		return "", &InvalidError{ReasonSeveralKeys}
	}
	return rest, nil
}
