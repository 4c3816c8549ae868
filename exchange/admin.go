package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// NewKey is what an admin asks for.
type NewKey struct {
	Namespace string
	Admin     bool // an admin key reaches no namespace
	Agent     string
	Session   string
	Note      string
	ExpiresIn time.Duration // 0: never
}

func (n NewKey) validate() error {
	switch {
	case n.Admin && n.Namespace != "":
		return errors.New("an admin key reaches no namespace: leave out either admin or namespace")
	case n.ExpiresIn < 0:
		return errors.New("expires_in is negative: give a duration such as \"24h\", or leave it out for a key that never expires")
	case n.Admin:
		return nil
	}
	if err := gateway.CheckNamespace(n.Namespace); err != nil {
		return err
	}
	return gateway.Identity{Namespace: n.Namespace, Agent: n.Agent, Session: n.Session}.Validate()
}

// CreateKey makes an opaque key for an admin. Who asks comes before what is asked, which is read only then: a stranger
// learns nothing from the checks of a body.
func (x *Exchange) CreateKey(ctx context.Context, authorization []string, asked func() (NewKey, error)) (Minted, error) {
	by, err := x.admin(ctx, authorization, VerbCreate)
	if err != nil {
		return Minted{}, err
	}
	n, err := asked()
	if err != nil {
		return Minted{}, err
	}
	if err := n.validate(); err != nil {
		return Minted{}, invalid(http.StatusBadRequest, err.Error())
	}
	secret := key.NewSecret()
	r := keystore.Record{
		ID: secret.ID, Kind: keystore.Static, SecretHash: key.HashSecret(secret.Text),
		Namespace: n.Namespace, Agent: n.Agent, Session: n.Session, Note: n.Note, CreatedAt: x.Now().UTC().Truncate(time.Microsecond),
	}
	if n.Admin {
		r.Kind, r.Agent, r.Session = keystore.Admin, "", ""
	}
	if n.ExpiresIn > 0 {
		r.ExpiresAt = r.CreatedAt.Add(n.ExpiresIn)
	}
	if err := x.Store.AddKey(ctx, r); err != nil {
		return Minted{}, storeUnavailable(err)
	}
	x.audit(ctx, "created", r, slog.String("by", by))
	return Minted{Key: secret.Text, Record: r}, nil
}

// ListKeys returns every key for an admin, the oldest first.
func (x *Exchange) ListKeys(ctx context.Context, authorization []string) ([]keystore.Record, error) {
	if _, err := x.admin(ctx, authorization, VerbList); err != nil {
		return nil, err
	}
	list, err := x.Store.Keys(ctx)
	if err != nil {
		return nil, storeUnavailable(err)
	}
	return list, nil
}

// JWKS returns the published verification keys as a JSON Web Key Set.
func (x *Exchange) JWKS(ctx context.Context) ([]byte, error) {
	list, err := x.Store.VerificationKeys(ctx)
	if err != nil {
		return nil, storeUnavailable(err)
	}
	return key.JWKS(list)
}

// EnsureAdminKey makes the store know the admin key that text is, so that whoever runs the exchange can manage keys from
// the start. Only its hash is stored. A key that was revoked stays revoked.
func EnsureAdminKey(ctx context.Context, store Store, text string, now time.Time) error {
	id, ok := key.ParseSecret(text)
	if !ok {
		return errors.New("the admin key has not the form rcl_<16 hex digits>_<64 hex digits>")
	}
	r, err := store.Key(ctx, id)
	switch {
	case err == nil && r.Kind == keystore.Admin && key.MatchesHash(text, r.SecretHash):
		return nil
	case err == nil:
		return fmt.Errorf("another key has the admin key's id %s: make a new admin key", id)
	case !errors.Is(err, keystore.ErrNotFound):
		return fmt.Errorf("look for the admin key: %w", err)
	}
	err = store.AddKey(ctx, keystore.Record{
		ID: id, Kind: keystore.Admin, SecretHash: key.HashSecret(text), Note: "bootstrap", CreatedAt: now.UTC().Truncate(time.Microsecond),
	})
	if err != nil {
		return fmt.Errorf("store the admin key's hash: %w", err)
	}
	return nil
}

// WhoAmI returns the record of the caller's own key, so that whoever builds an agent can see what it reaches, until when,
// and what survives a restart of its sandbox.
func (x *Exchange) WhoAmI(ctx context.Context, authorization []string) (keystore.Record, error) {
	return x.caller(ctx, authorization)
}
