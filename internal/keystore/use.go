package keystore

import (
	"time"

	"sallyport/internal/key"
)

// Refusal says in one word why a key that is stored does not count for whoever presents it.
type Refusal string

// The refusals. The zero Refusal is none.
const (
	RefusedUnknown Refusal = "unknown_key" // another secret or another kind of key: nothing is told of the one that is stored
	RefusedRevoked Refusal = "revoked"
	RefusedExpired Refusal = Refusal(key.ReasonExpired)
)

// State is what is stored of a key that decides whether it counts.
type State struct {
	Kind       Kind
	SecretHash []byte // Static and Admin only
	Revoked    bool
	ExpiresAt  time.Time // zero: never
}

// Introspection is what is stored of a key that whoever is shown it has to know: whether it counts, and whose it is.
type Introspection struct {
	State
	RevokedAt time.Time // zero: not revoked
	ID        string
	Namespace string // empty for Admin
	Tenant    string
	Agent     string
	Session   string
}

// State returns the key's.
func (r Record) State() State {
	return State{Kind: r.Kind, SecretHash: r.SecretHash, Revoked: r.Revoked(), ExpiresAt: r.ExpiresAt}
}

// RefuseOpaque says why an opaque key does not count. The secret comes before anything else is said: an id alone tells its
// bearer nothing.
func (s State) RefuseOpaque(presented string, now time.Time) Refusal {
	switch {
	case s.Kind == Signed || !key.MatchesHash(presented, s.SecretHash):
		return RefusedUnknown
	case s.Revoked:
		return RefusedRevoked
	case !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt):
		return RefusedExpired
	}
	return ""
}

// RefuseSigned says why a key whose signature and times were found good does not count.
func (s State) RefuseSigned() Refusal {
	switch {
	case s.Kind != Signed:
		return RefusedUnknown
	case s.Revoked:
		return RefusedRevoked
	}
	return ""
}
