// Package keystore keeps which keys exist, which are revoked, and the public halves that verify them.
//
// No secret is in it: of a signed key there is the record of what was minted, of an opaque key the hash. It does not
// decide anything: the exchange writes it, extauthz reads it.
package keystore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/postgres"
)

// ErrNotFound says that no key has the id that was asked for.
var ErrNotFound = errors.New("no key has this id")

// Kind says how a key is checked.
type Kind string

// The kinds of key.
const (
	Signed Kind = "signed" // a JWT that the exchange minted for a pod
	Static Kind = "static" // an opaque key that an admin made for a namespace
	Admin  Kind = "admin"  // an opaque key that manages keys and reaches no namespace
)

// Record is what is kept of a key.
type Record struct {
	ID             string
	Kind           Kind
	Namespace      string // empty for Admin
	Tenant         string
	Agent          string
	Session        string // the pod's name
	PodNamespace   string // the Kubernetes namespace; Signed only
	PodUID         string
	ServiceAccount string
	Regime         Regime
	Note           string
	SecretHash     []byte    // Static and Admin only: key.HashSecret
	CreatedAt      time.Time // all times are UTC, in microseconds
	ExpiresAt      time.Time // zero: never (Static and Admin only)
	RevokedAt      time.Time // zero: not revoked
	RevokedFor     string    // the reason given
}

// Regime says how the sandbox of a key's pod runs, as it was when the key was minted. It is told, and decides nothing.
type Regime struct {
	Claim   string   `json:"claim,omitempty"`   // the claim that holds the pod
	Pool    string   `json:"pool,omitempty"`    // the warm pool that the claim draws on
	Started string   `json:"started,omitempty"` // warm or cold
	Keeps   []string `json:"keeps,omitempty"`   // what outlives the pod: memory, disk
}

// Known says whether anything is.
func (r Regime) Known() bool { return r.Started != "" }

// Revoked says whether the key was revoked.
func (r Record) Revoked() bool { return !r.RevokedAt.IsZero() }

// Store is a key store. Methods are safe for concurrent use and return when what they did is durable.
type Store interface {
	// AddKey stores a new key; its id must be new.
	AddKey(ctx context.Context, r Record) error
	// Key returns ErrNotFound for an unknown id.
	Key(ctx context.Context, id string) (Record, error)
	// Introspect reads of a key what a door needs at every key that it has not seen, which is half of what Key reads. It
	// returns ErrNotFound for an unknown id.
	Introspect(ctx context.Context, id string) (Introspection, error)
	// Keys returns every key, the oldest first.
	Keys(ctx context.Context) ([]Record, error)
	// Revoke ends a key for a reason. Revoking again changes nothing; an unknown id is ErrNotFound.
	Revoke(ctx context.Context, id, reason string, at time.Time) error
	// RevokeMatching ends the keys that are selected for a reason: all of them or, if it fails, none; and whoever watches is
	// told of all at once. It returns those that it ended and that were neither revoked nor expired before, the oldest first,
	// so that of two who do it at once one hears of each key.
	RevokeMatching(ctx context.Context, which Selector, reason string, at time.Time) ([]Record, error)
	// PodKeys returns the keys of pods in a Kubernetes namespace that are neither revoked nor expired; with a pod's name,
	// those of pods of that name. The oldest come first.
	PodKeys(ctx context.Context, podNamespace, pod string) ([]Record, error)
	// PodNamespaces returns the Kubernetes namespaces in which PodKeys finds any, in order.
	PodNamespaces(ctx context.Context) ([]string, error)
	// WatchRevocations calls back with the id of every key revoked from now on, and when, by whichever process, until ctx
	// ends; resync is called first of all, and whenever some may have been missed. It returns when it can no longer tell.
	WatchRevocations(ctx context.Context, revoked func(id string, at time.Time), resync func()) error
	// PublishVerificationKey stores the public half of a signing key.
	PublishVerificationKey(ctx context.Context, k key.VerificationKey) error
	// VerificationKeys returns those that may still verify something.
	VerificationKeys(ctx context.Context) ([]key.VerificationKey, error)
	// Prune forgets keys that expired before then, and verification keys likewise. It returns how many keys it forgot.
	Prune(ctx context.Context, before time.Time) (int64, error)
	// Ping says whether the store can be read.
	Ping(ctx context.Context) error
	// Close ends the store's use.
	Close() error
}

// Open opens the key store that address names: sqlite:PATH, or postgres://USER@HOST/DATABASE.
func Open(ctx context.Context, address string, now func() time.Time) (Store, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return openSQLite(ctx, strings.TrimPrefix(rest, "//"), now)
	case postgres.Named(address):
		return openPostgres(ctx, address, now)
	default:
		// Only the scheme is quoted: an address may hold a password.
		return nil, fmt.Errorf("key store %q is not known: give sqlite:PATH, such as sqlite:/var/lib/sallyport/keys.db, or postgres://USER@HOST/DATABASE", scheme+":…")
	}
}
