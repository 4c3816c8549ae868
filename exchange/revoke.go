package exchange

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"sallyport/gateway"
	"sallyport/internal/keystore"
)

// Revocation says which keys an admin wants to end. What is set narrows: a key has to fit all of it.
type Revocation struct {
	Agent          string // TENANT:AGENT; or the agent's name alone, if Tenant is set
	Session        string // a pod's name
	Tenant         string
	ServiceAccount string // NAMESPACE/NAME
	All            bool   // every key but admin keys; alone
	Reason         string // kept with the keys; may be empty
}

// selector says in the key store's words what is asked for, and in the caller's what is wrong with it.
func (r Revocation) selector() (keystore.Selector, error) {
	s := keystore.Selector{All: r.All, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session}
	if tenant, agent, ok := strings.Cut(r.Agent, ":"); ok {
		if tenant == "" || agent == "" {
			return s, errors.New("agent is not of the form TENANT:AGENT, such as agents:run-1")
		}
		if r.Tenant != "" && r.Tenant != tenant {
			return s, errors.New("agent is of another tenant than the one that tenant names: leave tenant out")
		}
		s.Tenant, s.Agent = tenant, agent
	} else if r.Agent != "" && r.Tenant == "" {
		return s, errors.New("agent has no tenant: write it as TENANT:AGENT, such as agents:run-1, or name the tenant too")
	}
	if r.ServiceAccount != "" {
		var ok bool
		if s.PodNamespace, s.ServiceAccount, ok = strings.Cut(r.ServiceAccount, "/"); !ok || s.PodNamespace == "" || s.ServiceAccount == "" {
			return s, errors.New("service_account is not of the form NAMESPACE/NAME, such as agents/default")
		}
	}
	switch named := (keystore.Selector{All: true}); {
	case s == keystore.Selector{}:
		return s, errors.New("no key is named: give an agent, session, tenant or service_account, or \"all\": true to end every key that reaches a memory")
	case s.All && s != named:
		return s, errors.New("all is given together with what narrows it: leave one of the two out")
	}
	return s, nil
}

// maxReason bounds what is stored with every key that ends, in bytes.
const maxReason = 256

// because is what is kept with a key that somebody revoked.
func because(by, reason string) (string, error) {
	if len(reason) > maxReason {
		return "", invalid(http.StatusBadRequest, "reason is longer than 256 bytes")
	}
	for _, c := range reason {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return "", invalid(http.StatusBadRequest, "reason holds a control character, or is not UTF-8: write one line of text")
		}
	}
	if reason == "" {
		return "revoked by " + by, nil
	}
	return "revoked by " + by + ": " + reason, nil
}

// RevokeKeys ends all keys that an admin names in one go: all of them, or, if it fails, none. It returns those that it
// ended, the oldest first; keys that were revoked or had expired before are not among them. Who asks comes before what is
// asked, as in CreateKey.
func (x *Exchange) RevokeKeys(ctx context.Context, authorization []string, asked func() (Revocation, error)) ([]keystore.Record, error) {
	by, err := x.admin(ctx, authorization, VerbDeleteMany)
	if err != nil {
		return nil, err
	}
	r, err := asked()
	if err != nil {
		return nil, err
	}
	which, err := r.selector()
	if err != nil {
		return nil, invalid(http.StatusBadRequest, err.Error())
	}
	reason, err := because(by, r.Reason)
	if err != nil {
		return nil, err
	}
	ended, err := x.Store.RevokeMatching(ctx, which, reason, x.Now())
	if err != nil {
		return nil, storeUnavailable(err)
	}
	attrs := []slog.Attr{slog.String("by", by), slog.String("reason", r.Reason), slog.Int("count", len(ended)), slog.Bool("all", r.All)}
	for _, named := range []struct{ name, value string }{
		{"tenant", which.Tenant}, {"agent", which.Agent}, {"session", r.Session}, {"service_account", r.ServiceAccount},
	} {
		if named.value != "" {
			attrs = append(attrs, slog.String(named.name, named.value))
		}
	}
	x.Log.LogAttrs(ctx, slog.LevelInfo, "keys revoked", attrs...)
	return ended, nil
}

// RevokeKey ends one key, an admin key too, for an admin. Revoking it again is no error.
func (x *Exchange) RevokeKey(ctx context.Context, authorization []string, id string, asked func() (reason string, err error)) error {
	by, err := x.admin(ctx, authorization, VerbDelete)
	if err != nil {
		return err
	}
	given, err := asked()
	if err != nil {
		return err
	}
	reason, err := because(by, given)
	if err != nil {
		return err
	}
	err = x.Store.Revoke(ctx, id, reason, x.Now())
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		return &gateway.Error{
			Status: http.StatusNotFound, Code: gateway.CodeNotFound, Reason: "unknown_key",
			Message: "no key has this id: GET /v1/keys lists those there are",
		}
	case err != nil:
		return storeUnavailable(err)
	}
	x.audit(ctx, "revoked", keystore.Record{ID: id}, slog.String("by", by), slog.String("reason", given))
	return nil
}
