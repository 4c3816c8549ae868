package extauthz

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// Keys says what a signed key says: *VerifiedCache. Recall is Verify from memory alone: it does not wait, and returns
// ErrNotInMemory where Verify would have to work.
type Keys interface {
	Recall(presented []byte) (key.Claims, error)
	Verify(ctx context.Context, presented []byte) (key.Claims, error)
}

// Statuses says what the key store knows of a key: *RevocationCache. It returns keystore.ErrNotFound for a key that does not
// exist. Recall is Status from memory alone: it does not wait, and returns ErrNotInMemory where Status would ask the store.
type Statuses interface {
	Recall(id string) (Status, error)
	Status(ctx context.Context, id string) (Status, error)
}

// ErrNotInMemory says that an answer has to be waited for.
var ErrNotInMemory = errors.New("not in memory")

// Status is what the door needs to know of a key from the store.
type Status struct {
	keystore.State
	RevokedAt time.Time // by the clock of whoever revoked it
	Identity  gateway.Identity
}

// Authorizer decides.
type Authorizer struct {
	keys      Keys
	statuses  Statuses
	memory    source
	now       func() time.Time
	decisions map[Reason]*atomic.Uint64 // filled when it is made, and never changed: no lock is needed to count
}

// NewAuthorizer returns an Authorizer. now must be the clock that the keys and the statuses use.
func NewAuthorizer(k Keys, s Statuses, now func() time.Time) *Authorizer {
	a := &Authorizer{keys: k, statuses: s, memory: memory{k, s}, now: now, decisions: map[Reason]*atomic.Uint64{}}
	for _, reason := range reasons {
		a.decisions[reason] = &atomic.Uint64{}
	}
	return a
}

// Decisions returns how many decisions there were for each reason, since the process began.
func (a *Authorizer) Decisions() map[Reason]uint64 {
	out := make(map[Reason]uint64, len(a.decisions))
	for reason, n := range a.decisions {
		out[reason] = n.Load()
	}
	return out
}

// Decide says whether a request may pass. It fails shut: what cannot be found out is a denial with status 503.
func (a *Authorizer) Decide(ctx context.Context, r Request) Decision {
	if d, known := a.Begin(r); known {
		return d
	}
	return a.Continue(ctx, r)
}

// Begin is Decide for who must not wait: it decides from memory. Nearly every request is known to it; for one that is not,
// ask Continue.
func (a *Authorizer) Begin(r Request) (d Decision, known bool) {
	d = a.decide(r, a.memory)
	if d.Reason == reasonNotInMemory {
		return d, false
	}
	return a.counted(d), true
}

// Continue decides what Begin could not.
func (a *Authorizer) Continue(ctx context.Context, r Request) Decision {
	return a.counted(a.decide(r, asking{ctx, a.keys, a.statuses}))
}

func (a *Authorizer) counted(d Decision) Decision {
	if n := a.decisions[d.Reason]; n != nil {
		n.Add(1)
	}
	return d
}

func (a *Authorizer) decide(r Request, from source) Decision {
	if r.Unreadable != nil {
		return deny(ReasonUnavailable, r.Unreadable)
	}
	presented, err := key.FromRawAuthorization(r.Authorization)
	if err != nil {
		return denyInvalid(err)
	}
	var d Decision
	if key.LooksLikeSecret(presented) {
		d = a.decideOpaque(string(presented), from)
	} else {
		d = decideSigned(presented, from)
	}
	if d.Allowed() && contradicts(r.Claimed, d.Identity) {
		d.Reason, d.Denial = ReasonNamespaceMismatch, denialOf(ReasonNamespaceMismatch, nil)
	}
	return d
}

func decideSigned(presented []byte, from source) Decision {
	claims, err := from.verify(presented)
	if err != nil {
		return denyInvalid(err)
	}
	id := identityOf(claims)
	st, err := from.status(claims.ID)
	switch {
	case err != nil:
		return about(id, denyUnknown(err))
	case st.Revoked:
		return about(id, deny(ReasonRevoked, nil))
	case st.Kind != keystore.Signed || st.Identity != id || claims.Expires.After(st.ExpiresAt):
		// The record was written when the key was minted: a key that says something else was not minted by us.
		return about(id, deny(ReasonBrokenKey, nil))
	}
	return allow(id, claims.Expires)
}

func identityOf(c key.Claims) gateway.Identity {
	return gateway.Identity{Namespace: c.Namespace, Tenant: c.Tenant, Agent: c.Agent, Session: c.Session, KeyID: c.ID}
}

func (a *Authorizer) decideOpaque(presented string, from source) Decision {
	keyID, ok := key.ParseSecret(presented)
	if !ok {
		return deny(Reason(key.ReasonMalformed), nil)
	}
	st, err := from.status(keyID)
	if err != nil {
		return denyUnknown(err)
	}
	switch refused := st.RefuseOpaque(presented, a.now()); {
	case refused == keystore.RefusedUnknown:
		return deny(ReasonUnknownKey, nil) // an id alone tells its bearer nothing of whose it is
	case refused != "":
		return about(st.Identity, deny(Reason(refused), nil))
	case st.Kind == keystore.Admin:
		return about(st.Identity, deny(ReasonAdminKey, nil))
	}
	return allow(st.Identity, st.ExpiresAt)
}

// allow is the only place where a request is let through. A header value that a backend could not take is refused here,
// rather than sent on and misread there.
func allow(id gateway.Identity, expires time.Time) Decision {
	if err := id.Validate(); err != nil {
		return about(id, deny(ReasonBrokenKey, err))
	}
	return Decision{Identity: id, Expires: expires, Reason: ReasonAllowed}
}

// denyInvalid turns an error of package key into the denial with its reason; any other means that nothing could be found out.
func denyInvalid(err error) Decision {
	var invalid *key.InvalidError
	if errors.As(err, &invalid) {
		return deny(Reason(invalid.Reason), nil)
	}
	return denyUnavailable(err)
}

// denyUnknown is for a key that the key store does not know, or could not be asked about.
func denyUnknown(err error) Decision {
	if errors.Is(err, keystore.ErrNotFound) {
		return deny(ReasonUnknownKey, err)
	}
	return denyUnavailable(err)
}

func about(id gateway.Identity, d Decision) Decision {
	d.Identity = id
	return d
}
