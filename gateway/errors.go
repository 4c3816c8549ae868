package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Code is the machine-readable half of an error on the wire. The values are part of the Memory API (section 3).
type Code string

// The codes that the doors and the backends answer with.
const (
	CodeInvalidArgument   Code = "invalid_argument"
	CodeToolError         Code = "tool_error"
	CodeUnauthenticated   Code = "unauthenticated"
	CodeForbidden         Code = "forbidden"
	CodeNamespaceMismatch Code = "namespace_mismatch"
	CodeNotFound          Code = "not_found"
	CodeMethodNotAllowed  Code = "method_not_allowed"
	CodeRenewWithToken    Code = "renew_with_token"
	CodeRateLimited       Code = "rate_limited"
	CodeLimitExceeded     Code = "limit_exceeded"
	CodeUnavailable       Code = "unavailable"
	CodeNotPermitted      Code = "not_permitted"
	CodeInternal          Code = "internal"
)

// Error is a refusal that may be shown to the caller: Message says what to do and holds no secret. What must stay in the
// log (the API server's words, a database's) goes into Cause, which never reaches the wire.
type Error struct {
	Status     int           // HTTP status
	Code       Code          //
	Message    string        // one sentence for the caller
	Reason     string        // one word for logs and metrics, finer than Code; may be empty
	RetryAfter time.Duration // sent as Retry-After, rounded up to whole seconds; 0 sends none
	Allow      string        // sent as Allow, with status 405
	Cause      error         // for the log alone
}

// Error returns the message and the cause: it is meant for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Challenge is the WWW-Authenticate value of every 401. The realm is the one that the Memory API's clients know.
const Challenge = `Bearer realm="recall"`

// Body returns the JSON that goes over the wire: {"error":{"code","message"}}.
func (e *Error) Body() []byte {
	type inner struct {
		Code    Code   `json:"code"`
		Message string `json:"message"`
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // people read "Bearer <key>" in a terminal
	err := encoder.Encode(struct {
		Error inner `json:"error"`
	}{inner{e.Code, e.Message}})
	if err != nil { // two strings always marshal
		panic("gateway: marshal error body: " + err.Error())
	}
	return body.Bytes()
}

// Headers returns the headers that go with the error besides Content-Type.
func (e *Error) Headers() []HeaderValue {
	var out []HeaderValue
	if e.Status == http.StatusUnauthorized {
		out = append(out, HeaderValue{"www-authenticate", Challenge})
	}
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		out = append(out, HeaderValue{"retry-after", strconv.Itoa(int(seconds))})
	}
	if e.Allow != "" {
		out = append(out, HeaderValue{"allow", e.Allow})
	}
	return out
}

// AsError returns err as an *Error; anything else becomes a 500 that tells the caller nothing of its cause.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "the server failed; its log says why", Cause: err}
}

// WriteError is the one place where an error becomes an HTTP answer.
func WriteError(w http.ResponseWriter, err error) {
	e := AsError(err)
	for _, h := range e.Headers() {
		w.Header().Set(h.Name, h.Value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(e.Body()) // the caller is gone if this fails
}
