package key

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Reason says why a key is not valid: one word for the log, the metrics and the choice of a message.
type Reason string

// The reasons of an InvalidError.
const (
	ReasonMalformed         Reason = "malformed"
	ReasonWrongType         Reason = "wrong_type"
	ReasonUnknownSigningKey Reason = "unknown_signing_key"
	ReasonBadSignature      Reason = "bad_signature"
	ReasonExpired           Reason = "expired"
	ReasonNotYetValid       Reason = "not_yet_valid"
	ReasonWrongIssuer       Reason = "wrong_issuer"
	ReasonWrongAudience     Reason = "wrong_audience"
)

// InvalidError says that a presented key is not valid. It holds nothing of the key.
type InvalidError struct{ Reason Reason }

// Error returns the reason.
func (e *InvalidError) Error() string { return "key is not valid: " + string(e.Reason) }

// ErrUnavailable says that the verification keys could not be asked for, so that nothing is known about a key.
var ErrUnavailable = errors.New("verification keys are not available")

// PublicKeys finds a verification key by its kid. It returns an *InvalidError with ReasonUnknownSigningKey for one that
// does not exist, and an error that wraps ErrUnavailable if it could not find out.
type PublicKeys interface {
	PublicKey(ctx context.Context, kid string) (ed25519.PublicKey, error)
}

// Verifier checks the signature and the claims of a key, and not whether it was revoked.
type Verifier struct {
	keys   PublicKeys
	parser *jwt.Parser
}

// NewVerifier returns a Verifier for keys with this issuer and audience.
func NewVerifier(keys PublicKeys, issuer, audience string, now func() time.Time) *Verifier {
	return &Verifier{keys: keys, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithIssuer(issuer),
		jwt.WithAudience(audience),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithNotBeforeRequired(),
		jwt.WithLeeway(Leeway),
		jwt.WithTimeFunc(now),
		jwt.WithStrictDecoding(),
	)}
}

// Verify returns what a key says, an *InvalidError, or an error that wraps ErrUnavailable.
func (v *Verifier) Verify(ctx context.Context, presented string) (Claims, error) {
	const dots = 2
	if len(presented) > MaxBytes || strings.Count(presented, ".") != dots {
		return Claims{}, &InvalidError{ReasonMalformed}
	}
	var w wire
	_, err := v.parser.ParseWithClaims(presented, &w, func(t *jwt.Token) (any, error) {
		if t.Header["typ"] != Type {
			return nil, &InvalidError{ReasonWrongType}
		}
		kid, _ := t.Header["kid"].(string)
		return v.keys.PublicKey(ctx, kid)
	})
	if err != nil {
		return Claims{}, reasonOf(err)
	}
	if w.ID == "" || w.Namespace == "" {
		return Claims{}, &InvalidError{ReasonMalformed}
	}
	return w.claims(), nil
}

// reasonOf maps golang-jwt's errors, which may be joined, to one reason.
func reasonOf(err error) error {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return invalid
	}
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("find verification key: %w", err)
	}
	for _, r := range []struct {
		err    error
		reason Reason
	}{
		{jwt.ErrTokenSignatureInvalid, ReasonBadSignature},
		{jwt.ErrTokenExpired, ReasonExpired},
		{jwt.ErrTokenNotValidYet, ReasonNotYetValid},
		{jwt.ErrTokenUsedBeforeIssued, ReasonNotYetValid},
		{jwt.ErrTokenInvalidIssuer, ReasonWrongIssuer},
		{jwt.ErrTokenInvalidAudience, ReasonWrongAudience},
	} {
		if errors.Is(err, r.err) {
			return &InvalidError{r.reason}
		}
	}
	return &InvalidError{ReasonMalformed}
}
