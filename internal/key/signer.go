package key

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sallyport/internal/periodic"
)

// VerificationKey is the public half of a signing key.
type VerificationKey struct {
	ID       string // the JWT kid
	Public   ed25519.PublicKey
	NotAfter time.Time // nothing that it signed is valid later
}

// Publisher makes a verification key known to every door. It returns only when the key is stored.
type Publisher interface {
	PublishVerificationKey(ctx context.Context, k VerificationKey) error
}

// SignerOptions configures NewSigner.
type SignerOptions struct {
	Issuer   string
	Audience string
	MaxTTL   time.Duration // no key lives longer
	Lifetime time.Duration // a signing key is replaced after it
	Now      func() time.Time
}

// DefaultSigningKeyLifetime is long enough to keep the published set small, and short enough that a leaked process image
// is soon worthless.
const DefaultSigningKeyLifetime = 6 * time.Hour

// Signer signs keys with an Ed25519 key that exists only in this process's memory.
type Signer struct {
	opts      SignerOptions
	publisher Publisher
	current   atomic.Pointer[signingKey]
}

type signingKey struct {
	id       string
	private  ed25519.PrivateKey
	created  time.Time
	notAfter time.Time
}

// NewSigner makes the first signing key and publishes it.
func NewSigner(ctx context.Context, p Publisher, opts SignerOptions) (*Signer, error) {
	s := &Signer{opts: opts, publisher: p}
	return s, s.Rotate(ctx)
}

// Rotate replaces the signing key. The new one is published before it signs anything, because a door that meets an
// unknown kid refuses it until its next look (istio#29436).
func (s *Signer) Rotate(ctx context.Context) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("generate signing key: %w", err)
	}
	now := s.opts.Now()
	// One more lifetime than is planned: while the key store cannot take a new key, the old one goes on signing.
	next := &signingKey{id: NewID(), private: private, created: now, notAfter: now.Add(2*s.opts.Lifetime + s.opts.MaxTTL)}
	if err := s.publisher.PublishVerificationKey(ctx, VerificationKey{ID: next.id, Public: public, NotAfter: next.notAfter}); err != nil {
		return fmt.Errorf("publish verification key: %w", err)
	}
	s.current.Store(next)
	return nil
}

// Due says whether the signing key has reached its lifetime.
func (s *Signer) Due() bool {
	return !s.opts.Now().Before(s.current.Load().created.Add(s.opts.Lifetime))
}

// Run replaces the signing key when it is due, until ctx ends. A failure is given to report and tried again.
func (s *Signer) Run(ctx context.Context, report func(error)) {
	const look = 15 * time.Second
	periodic.Run(ctx, look, func(ctx context.Context) error {
		if !s.Due() {
			return nil
		}
		return s.Rotate(ctx)
	}, report)
}

// errSigningKeyRetired means that no new signing key could be published for a whole lifetime.
var errSigningKeyRetired = errors.New("the signing key is past its life, and no new one could be published")

// Sign returns the key that carries c.
func (s *Signer) Sign(c Claims) (string, error) {
	if ttl := c.Expires.Sub(c.IssuedAt); ttl <= 0 || ttl > s.opts.MaxTTL {
		return "", fmt.Errorf("key lifetime %s is not within 0 and %s", ttl, s.opts.MaxTTL)
	}
	k := s.current.Load()
	if c.Expires.After(k.notAfter) {
		return "", errSigningKeyRetired
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, toWire(c, s.opts.Issuer, s.opts.Audience))
	t.Header["typ"] = Type
	t.Header["kid"] = k.id
	signed, err := t.SignedString(k.private)
	if err != nil {
		return "", fmt.Errorf("sign key: %w", err)
	}
	return signed, nil
}
