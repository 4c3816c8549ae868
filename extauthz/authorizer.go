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

// Verifier checks a signed key: *key.Verifier, or VerifiedCache in front of it.
type Verifier interface {
	Verify(ctx context.Context, presented string) (key.Claims, error)
}

// Statuses says what the key store knows of a key: *RevocationCache. It returns keystore.ErrNotFound for a key that does not exist.
type Statuses interface {
	Status(ctx context.Context, id string) (Status, error)
}

// Status is what the door needs to know of a key from the store.
type Status struct {
	keystore.State
	RevokedAt time.Time // by the clock of whoever revoked it
	Identity  gateway.Identity
}

// Authorizer decides.
type Authorizer struct {
	verifier  Verifier
	statuses  Statuses
	now       func() time.Time
	decisions map[Reason]*atomic.Uint64 // filled when it is made, and never changed: no lock is needed to count
}

// NewAuthorizer returns an Authorizer. now must be the clock that the verifier and the statuses use.
func NewAuthorizer(v Verifier, s Statuses, now func() time.Time) *Authorizer {
	a := &Authorizer{verifier: v, statuses: s, now: now, decisions: map[Reason]*atomic.Uint64{}}
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
	d := a.decide(ctx, r)
	if n := a.decisions[d.Reason]; n != nil {
		n.Add(1)
	}
	return d
}

func (a *Authorizer) decide(ctx context.Context, r Request) Decision {
	if r.Unreadable != nil {
		return deny(ReasonUnavailable, r.Unreadable)
	}
	presented, err := key.FromAuthorization(r.Authorization)
	if err != nil {
		return denyInvalid(err)
	}
	var d Decision
	if key.LooksLikeSecret(presented) {
		d = a.decideOpaque(ctx, presented)
	} else {
		d = a.decideSigned(ctx, presented)
	}
	if d.Allowed() && contradicts(r.Claimed, d.Identity) {
		d.Reason, d.Denial = ReasonNamespaceMismatch, denialOf(ReasonNamespaceMismatch, nil)
	}
	return d
}

func (a *Authorizer) decideSigned(ctx context.Context, presented string) Decision {
	claims, err := a.verifier.Verify(ctx, presented)
	if err != nil {
		return denyInvalid(err)
	}
	id := identityOf(claims)
	st, err := a.statuses.Status(ctx, claims.ID)
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		return about(id, deny(ReasonUnknownKey, err))
	case err != nil:
		return about(id, deny(ReasonUnavailable, err))
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

func (a *Authorizer) decideOpaque(ctx context.Context, presented string) Decision {
	keyID, ok := key.ParseSecret(presented)
	if !ok {
		return deny(Reason(key.ReasonMalformed), nil)
	}
	st, err := a.statuses.Status(ctx, keyID)
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		return deny(ReasonUnknownKey, err)
	case err != nil:
		return deny(ReasonUnavailable, err)
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
	return deny(ReasonUnavailable, err)
}

func about(id gateway.Identity, d Decision) Decision {
	d.Identity = id
	return d
}
