package exchange

import (
	"context"
	"errors"
	"net/http"

	"sallyport/gateway"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// caller returns the record of the key that the Authorization lines present, if it is good now.
func (x *Exchange) caller(ctx context.Context, authorization []string) (keystore.Record, error) {
	presented, err := key.FromAuthorization(authorization)
	if err != nil {
		return keystore.Record{}, notAKey(err)
	}
	if key.LooksLikeSecret(presented) {
		return x.opaqueCaller(ctx, presented)
	}
	claims, err := x.Verifier.Verify(ctx, presented)
	if err != nil {
		return keystore.Record{}, notAKey(err)
	}
	r, err := x.record(ctx, claims.ID)
	if err != nil {
		return keystore.Record{}, err
	}
	return unlessRefused(r, r.State().RefuseSigned())
}

func (x *Exchange) opaqueCaller(ctx context.Context, presented string) (keystore.Record, error) {
	id, ok := key.ParseSecret(presented)
	if !ok {
		return keystore.Record{}, badKey(string(key.ReasonMalformed))
	}
	r, err := x.record(ctx, id)
	if err != nil {
		return keystore.Record{}, err
	}
	return unlessRefused(r, r.State().RefuseOpaque(presented, x.Now()))
}

func (x *Exchange) record(ctx context.Context, id string) (keystore.Record, error) {
	r, err := x.Store.Key(ctx, id)
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		return keystore.Record{}, badKey(string(keystore.RefusedUnknown))
	case err != nil:
		return keystore.Record{}, storeUnavailable(err)
	}
	return r, nil
}

func unlessRefused(r keystore.Record, why keystore.Refusal) (keystore.Record, error) {
	if why != "" {
		return keystore.Record{}, badKey(string(why))
	}
	return r, nil
}

// Verb is what an admin wants to do with keys, in the words of Kubernetes' RBAC.
type Verb string

// The verbs.
const (
	VerbList       Verb = "list"
	VerbCreate     Verb = "create"
	VerbDelete     Verb = "delete"           // one key
	VerbDeleteMany Verb = "deletecollection" // those of an agent, a tenant, …
)

// Admins says whether the user whom a cluster's token belongs to may manage keys. It returns the user's name for the
// record, or a *gateway.Error.
type Admins interface {
	Authorize(ctx context.Context, token string, verb Verb) (user string, err error)
}

// admin lets those pass who hold an admin key, and users of the cluster whom it allows to. It returns who that is, for the
// record.
func (x *Exchange) admin(ctx context.Context, authorization []string, verb Verb) (by string, err error) {
	r, err := x.caller(ctx, authorization)
	switch {
	case err == nil && r.Kind == keystore.Admin:
		return "admin key " + r.ID, nil
	case err == nil:
		return "", &gateway.Error{
			Status: http.StatusForbidden, Code: gateway.CodeForbidden, Reason: "not_an_admin_key",
			Message: "keys are managed with an admin key: this one reaches a namespace",
		}
	}
	presented, noKey := key.FromAuthorization(authorization)
	if x.Admins == nil || noKey != nil || key.LooksLikeSecret(presented) || gateway.AsError(err).Status != http.StatusUnauthorized {
		return "", err
	}
	user, err := x.Admins.Authorize(ctx, presented, verb)
	if err != nil {
		return "", err
	}
	return "user " + user, nil
}

func notAKey(err error) error {
	var bad *key.InvalidError
	if !errors.As(err, &bad) {
		return storeUnavailable(err)
	}
	if bad.Reason == key.ReasonNoKey {
		return unauthenticated(string(bad.Reason), "no key was sent: send \"Authorization: Bearer <key>\"", nil)
	}
	return badKey(string(bad.Reason))
}

func badKey(reason string) error {
	return unauthenticated(reason, "the key is not valid, has expired or was revoked", nil)
}
