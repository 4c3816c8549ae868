package extauthz

import (
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
)

// Request is what the decision depends on.
type Request struct {
	Authorization [][]byte              // every Authorization line, as the client sent it; read, and not kept
	Claimed       []gateway.HeaderValue // what the client said under the trusted prefix; Name is what follows the prefix, such as "namespace"
	Unreadable    error                 // why the rest could not be read; nil: it was
}

// Decision is the answer to a Request.
type Decision struct {
	Identity gateway.Identity // whose data; on a denial what is known of it, for the log
	Expires  time.Time        // of the key; zero if it never does
	Reason   Reason           // why
	Denial   *gateway.Error   // nil: allowed
}

// Allowed says whether the request may pass.
func (d Decision) Allowed() bool { return d.Denial == nil }

// Reason says in one word why a decision is what it is, for logs, metadata and metrics. Besides these there are the
// reasons of package key, such as "bad_signature".
type Reason string

// reasons are all that there are, for those who count.
var reasons = []Reason{
	ReasonAllowed, ReasonUnknownKey, ReasonRevoked, ReasonExpired, ReasonAdminKey, ReasonNamespaceMismatch, ReasonUnavailable, ReasonBrokenKey,
	Reason(key.ReasonNoKey), Reason(key.ReasonSeveralKeys), Reason(key.ReasonWrongScheme), Reason(key.ReasonMalformed), Reason(key.ReasonWrongType),
	Reason(key.ReasonUnknownSigningKey), Reason(key.ReasonBadSignature), Reason(key.ReasonNotYetValid), Reason(key.ReasonWrongIssuer), Reason(key.ReasonWrongAudience),
}

// The reasons.
const (
	ReasonAllowed           Reason = "allowed"
	ReasonUnknownKey        Reason = "unknown_key"
	ReasonRevoked           Reason = "revoked"
	ReasonExpired           Reason = Reason(key.ReasonExpired)
	ReasonAdminKey          Reason = "admin_key"
	ReasonNamespaceMismatch Reason = "namespace_mismatch"
	ReasonUnavailable       Reason = "unavailable"
	ReasonBrokenKey         Reason = "broken_key"
)
