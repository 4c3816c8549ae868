package exchange

import (
	"net/http"
	"time"

	"sallyport/gateway"
)

func unauthenticated(reason, message string, cause error) *gateway.Error {
	return &gateway.Error{Status: http.StatusUnauthorized, Code: gateway.CodeUnauthenticated, Reason: reason, Message: message, Cause: cause}
}

func unavailable(reason, message string, retryAfter time.Duration, cause error) *gateway.Error {
	return &gateway.Error{
		Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable,
		Reason: reason, Message: message, RetryAfter: retryAfter, Cause: cause,
	}
}

func invalid(status int, message string) *gateway.Error {
	return &gateway.Error{Status: status, Code: gateway.CodeInvalidArgument, Reason: "invalid_argument", Message: message}
}

// storeRetryAfter is what a client is told when the key store cannot be asked.
const storeRetryAfter = time.Second

func storeUnavailable(cause error) *gateway.Error {
	return unavailable("key_store_unavailable", "the key store cannot be reached just now: try again", storeRetryAfter, cause)
}
