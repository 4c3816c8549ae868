package exchange

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
	"sallyport/internal/periodic"
)

// DefaultKeyTTL is how long a key lives: long enough that renewing is rare, short enough that a copied one is soon dead.
const DefaultKeyTTL = 15 * time.Minute

// Store is what the exchange needs of a key store.
type Store interface {
	AddKey(ctx context.Context, r keystore.Record) error
	Key(ctx context.Context, id string) (keystore.Record, error)
	Keys(ctx context.Context) ([]keystore.Record, error)
	Revoke(ctx context.Context, id, reason string, at time.Time) error
	RevokeMatching(ctx context.Context, which keystore.Selector, reason string, at time.Time) ([]keystore.Record, error)
	VerificationKeys(ctx context.Context) ([]key.VerificationKey, error)
	Prune(ctx context.Context, before time.Time) (int64, error)
}

// Signer signs a key: *key.Signer.
type Signer interface {
	Sign(c key.Claims) (string, error)
}

// Verifier checks a signed key: *key.Verifier.
type Verifier interface {
	Verify(ctx context.Context, presented string) (key.Claims, error)
}

// Options configures New. All of it is needed but what may be nil.
type Options struct {
	Authenticator Authenticator
	Store         Store
	Signer        Signer
	Verifier      Verifier
	KeyTTL        time.Duration
	Now           func() time.Time
	Log           *slog.Logger
	// Admins lets users of the cluster manage keys, besides those who hold an admin key. May be nil.
	Admins Admins
	// Minted hears of every key of a pod once it is stored: a pod that was deleted just before would be missed otherwise by
	// whoever watches pods to revoke their keys. It must not wait. May be nil.
	Minted func(r keystore.Record)
}

// Exchange mints, renews, lists and revokes keys. Its errors are *gateway.Error.
type Exchange struct{ Options }

// New returns an Exchange.
func New(opts Options) *Exchange { return &Exchange{opts} }

// Minted is a new key and what is known of it.
type Minted struct {
	Key    string // shown once
	Record keystore.Record
}

// Mint gives the pod that holds the token a key.
func (x *Exchange) Mint(ctx context.Context, token string) (Minted, error) {
	id, err := x.authenticate(ctx, token)
	if err != nil {
		return Minted{}, err
	}
	return x.mintFor(ctx, id, "minted")
}

// Renew gives a new key to a pod that shows both its old key and its token. The old key lives to its own end, so that
// what is in flight does not fail. A key alone renews nothing: whoever copied it must not keep it alive.
func (x *Exchange) Renew(ctx context.Context, authorization []string, token string) (Minted, error) {
	old, err := x.caller(ctx, authorization)
	if err != nil {
		return Minted{}, err
	}
	if old.Kind != keystore.Signed {
		return Minted{}, &gateway.Error{
			Status: http.StatusConflict, Code: gateway.CodeRenewWithToken, Reason: "not_renewable",
			Message: "a key that an admin made is not renewed: ask the admin for another one",
		}
	}
	if token == "" {
		return Minted{}, &gateway.Error{
			Status: http.StatusConflict, Code: gateway.CodeRenewWithToken, Reason: "renew_with_token",
			Message: "a key is renewed with its pod's token: send {\"token\":…} along with the key, or exchange the token at POST /v1/auth/kubernetes",
		}
	}
	id, err := x.authenticate(ctx, token)
	if err != nil {
		return Minted{}, err
	}
	if id.PodUID != old.PodUID || id.Namespace() != old.Namespace {
		return Minted{}, &gateway.Error{
			Status: http.StatusForbidden, Code: gateway.CodeNamespaceMismatch, Reason: "token_of_another_pod",
			Message: "the token and the key are not of one pod: exchange the token at POST /v1/auth/kubernetes",
		}
	}
	return x.mintFor(ctx, id, "renewed")
}

func (x *Exchange) authenticate(ctx context.Context, token string) (Identity, error) {
	if token == "" {
		return Identity{}, invalid(http.StatusBadRequest, "token is empty: send the pod's projected service-account token")
	}
	return x.Authenticator.Authenticate(ctx, token)
}

// mintFor stores the record before it signs: a key that works but is in no list could not be revoked.
func (x *Exchange) mintFor(ctx context.Context, id Identity, event string) (Minted, error) {
	now := x.Now().UTC().Truncate(time.Second) // JWT times are whole seconds
	r := keystore.Record{
		ID: key.NewID(), Kind: keystore.Signed,
		Namespace: id.Namespace(), Tenant: id.Tenant, Agent: id.Agent, Session: id.Session,
		PodNamespace: id.PodNamespace, PodUID: id.PodUID, ServiceAccount: id.ServiceAccount, Regime: id.Regime,
		Note:      "exchanged for the token of pod " + id.PodNamespace + "/" + id.Session,
		CreatedAt: now, ExpiresAt: now.Add(x.KeyTTL),
	}
	if end := id.EndsAt.UTC().Truncate(time.Second); !id.EndsAt.IsZero() && end.Before(r.ExpiresAt) {
		r.ExpiresAt = end
	}
	if err := x.Store.AddKey(ctx, r); err != nil {
		return Minted{}, storeUnavailable(err)
	}
	if x.Minted != nil {
		x.Minted(r)
	}
	signed, err := x.Signer.Sign(key.Claims{
		ID: r.ID, Namespace: r.Namespace, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session,
		PodUID: r.PodUID, ServiceAccount: r.ServiceAccount, IssuedAt: r.CreatedAt, Expires: r.ExpiresAt,
	})
	if err != nil {
		return Minted{}, unavailable("signing_failed", "no key can be signed just now: try again", storeRetryAfter, err)
	}
	x.audit(ctx, event, r)
	return Minted{Key: signed, Record: r}, nil
}

func (x *Exchange) audit(ctx context.Context, event string, r keystore.Record, more ...slog.Attr) {
	attrs := append([]slog.Attr{
		slog.String("key_id", r.ID), slog.String("kind", string(r.Kind)), slog.String("namespace", r.Namespace), slog.String("session", r.Session),
	}, more...)
	x.Log.LogAttrs(ctx, slog.LevelInfo, "key "+event, attrs...)
}

const (
	pruneEvery = 10 * time.Minute
	// keepExpired is how long an expired key stays in the list, for whoever looks into an incident.
	keepExpired = 24 * time.Hour
)

// Run forgets keys that expired a day ago, until ctx ends.
func (x *Exchange) Run(ctx context.Context) {
	periodic.Run(ctx, pruneEvery, func(ctx context.Context) error {
		_, err := x.Store.Prune(ctx, x.Now().Add(-keepExpired))
		return err
	}, func(err error) {
		x.Log.WarnContext(ctx, "old keys could not be forgotten; trying again later", "error", err)
	})
}
