package extauthz

import (
	"net/http"
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
)

// retryAfter is what a client is told when the door cannot find out: outages of the key store tend to be short.
const retryAfter = time.Second

const exchangeHint = "exchange the pod's token for a new one at POST /v1/auth/kubernetes"

// deny makes the one answer that belongs to a reason. Messages say what to do and nothing of what was presented.
func deny(reason Reason, cause error) Decision {
	return Decision{Reason: reason, Denial: denialOf(reason, cause)}
}

func denialOf(reason Reason, cause error) *gateway.Error {
	unauthenticated := func(message string) *gateway.Error {
		return &gateway.Error{Status: http.StatusUnauthorized, Code: gateway.CodeUnauthenticated, Message: message, Cause: cause}
	}
	switch reason {
	case Reason(key.ReasonNoKey):
		return unauthenticated("no key was sent: send \"Authorization: Bearer <key>\"; " + exchangeHint)
	case Reason(key.ReasonSeveralKeys):
		return unauthenticated("more than one Authorization header was sent: send exactly one")
	case Reason(key.ReasonWrongScheme):
		return unauthenticated("the Authorization header is not of the Bearer scheme: send \"Authorization: Bearer <key>\"")
	case ReasonExpired:
		return unauthenticated("the key has expired: " + exchangeHint)
	case ReasonRevoked:
		return unauthenticated("the key was revoked: " + exchangeHint + ", if the pod may still have one")
	case ReasonAdminKey:
		return &gateway.Error{
			Status: http.StatusForbidden, Code: gateway.CodeNamespaceMismatch,
			Message: "an admin key manages keys and reaches no namespace: make a key for the namespace with POST /v1/keys", Cause: cause,
		}
	case ReasonNamespaceMismatch:
		return &gateway.Error{
			Status: http.StatusForbidden, Code: gateway.CodeNamespaceMismatch,
			Message: "a header names another identity than the key's: leave the gateway's headers out, the key says whose memory it is", Cause: cause,
		}
	case ReasonUnavailable:
		return &gateway.Error{
			Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable,
			Message: "whether the key is still good cannot be found out just now: try again", RetryAfter: retryAfter, Cause: cause,
		}
	case Reason(key.ReasonNotYetValid):
		return unauthenticated("the key is not valid yet: the clocks of the exchange and the gateway differ")
	default:
		return unauthenticated("the key is not valid: " + exchangeHint)
	}
}
