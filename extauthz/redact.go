package extauthz

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// People put credentials where they do not belong. What a request says of itself is logged only as far as it cannot be one.

const (
	maxLoggedPath = 256 // bytes
	maxLoggedID   = 48  // a UUID has 36, AWS's trace ids 40; the secret of an opaque key has 64
	redacted      = "REDACTED"
)

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// loggedMethod is a method of HTTP or, as OpenTelemetry writes it, _OTHER.
func loggedMethod(method string) string {
	if method == "" || slices.Contains(methods, method) {
		return method
	}
	return "_OTHER"
}

// token matches what a credential of this system looks like: a JWT (a pod's token or a key) even without its last part, or
// an opaque key or its secret alone.
var token = regexp.MustCompile(`ey[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_.-]*|rcl_[A-Za-z0-9_]*|[0-9a-f]{64}`)

// loggedPath cuts the query off, hides what looks like a token, and bounds the length.
func loggedPath(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	if plain, err := url.PathUnescape(path); err != nil || token.MatchString(plain) {
		path = plain // "" if it cannot be read
	}
	path = token.ReplaceAllString(path, redacted)
	if len(path) > maxLoggedPath {
		path = strings.ToValidUTF8(path[:maxLoggedPath], "") + "…"
	}
	return path
}

// loggedID returns a request id, or nothing if it has a character that the ids of proxies do not have and every token does:
// a dot or an underscore, for two.
func loggedID(id string) string {
	if len(id) > maxLoggedID {
		return ""
	}
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("-:=", rune(c)) {
			return ""
		}
	}
	return id
}
