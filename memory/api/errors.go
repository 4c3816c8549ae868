package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sallyport/gateway"
	"sallyport/memory/refusal"
)

// busy is what a caller is told whose request ended before the store could do it.
const busy = "the server is too busy, or is stopping; try again"

// failure turns an error of the service into what REST answers. A fault of the server keeps its words for the log.
func failure(err error) *gateway.Error {
	if r := refusal.As(err); r != nil {
		switch r.Kind {
		case refusal.Argument:
			return &gateway.Error{Status: http.StatusBadRequest, Code: gateway.CodeInvalidArgument, Message: r.Text}
		case refusal.Mismatch:
			return &gateway.Error{Status: http.StatusForbidden, Code: gateway.CodeNamespaceMismatch, Message: r.Text}
		case refusal.Full:
			return &gateway.Error{Status: http.StatusForbidden, Code: gateway.CodeLimitExceeded, Message: r.Text}
		case refusal.TooOften:
			return &gateway.Error{Status: http.StatusTooManyRequests, Code: gateway.CodeRateLimited, Message: r.Text, RetryAfter: r.After}
		case refusal.Operation:
		}
		return &gateway.Error{Status: http.StatusBadRequest, Code: gateway.CodeToolError, Message: r.Text}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &gateway.Error{Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: busy, RetryAfter: time.Second, Cause: err}
	}
	return gateway.AsError(err)
}

// fail answers with an error, and logs it if it is the server's own.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := failure(err)
	h.note(r.Context(), e)
	gateway.WriteError(w, e)
}

func (h *handler) note(ctx context.Context, e *gateway.Error) {
	if e.Status < http.StatusInternalServerError {
		return
	}
	id, _ := gateway.FromContext(ctx)
	h.log.ErrorContext(ctx, "request failed", "namespace", id.Namespace, "key", id.KeyID, "error", e.Error())
}
