// Package oidc verifies projected service-account tokens against the JSON Web Key Set of their issuer, without asking
// anybody.
//
// A signature says who a pod was when the token was made, not that the pod still exists: package sandbox finds that out.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"sallyport/exchange"
	"sallyport/exchange/sandbox"
	"sallyport/internal/key"
)

// maxTokenBytes is far above a projected token, which has about 1.5 KiB.
const maxTokenBytes = 8 << 10

// Options configures New.
type Options struct {
	Issuer   string
	Audience string // of the projected tokens: the one that the pods' volumes ask for
	Now      func() time.Time
}

// Reviewer implements exchange.Reviewer.
type Reviewer struct {
	audience string
	keys     jwt.Keyfunc
	parser   *jwt.Parser
}

// New returns a Reviewer that trusts the keys of a JSON Web Key Set.
func New(jwks json.RawMessage, opts Options) (*Reviewer, error) {
	keys, err := keyfunc.NewJWKSetJSON(jwks)
	if err != nil {
		return nil, fmt.Errorf("read the issuer's key set: %w", err)
	}
	return &Reviewer{
		audience: opts.Audience,
		keys:     keys.Keyfunc,
		parser: jwt.NewParser(
			// What Kubernetes signs with. No HMAC: a public key must never do as a shared secret.
			jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"}),
			jwt.WithIssuer(opts.Issuer),
			jwt.WithAudience(opts.Audience),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithLeeway(key.Leeway),
			jwt.WithTimeFunc(opts.Now),
			jwt.WithStrictDecoding(),
		),
	}, nil
}

// projected is what a projected service-account token says (KEP-1205).
type projected struct {
	jwt.RegisteredClaims
	Kubernetes struct {
		Namespace      string    `json:"namespace"`
		Pod            reference `json:"pod"`
		ServiceAccount reference `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Review implements exchange.Reviewer.
func (r *Reviewer) Review(_ context.Context, token string) (sandbox.Subject, error) {
	if len(token) > maxTokenBytes {
		return sandbox.Subject{}, reject("malformed", "the token is longer than any service-account token", nil)
	}
	var p projected
	if _, err := r.parser.ParseWithClaims(token, &p, r.keys); err != nil {
		return sandbox.Subject{}, r.rejection(err)
	}
	k := p.Kubernetes
	// The subject is what the cluster's authorizer goes by; a token whose parts disagree was not made by one.
	if k.Namespace == "" || k.ServiceAccount.Name == "" || p.Subject != strings.Join([]string{"system:serviceaccount", k.Namespace, k.ServiceAccount.Name}, ":") {
		return sandbox.Subject{}, reject("not_a_service_account", "the token is not a service account's: send the pod's projected token", nil)
	}
	return sandbox.Subject{Namespace: k.Namespace, ServiceAccount: k.ServiceAccount.Name, PodName: k.Pod.Name, PodUID: k.Pod.UID}, nil
}

// ReasonBadSignature is the reason when none of the keys signed a token: there may be newer ones.
const ReasonBadSignature = "bad_signature"

// rejection words golang-jwt's errors, whose own texts stay in the log.
func (r *Reviewer) rejection(err error) error {
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return reject("wrong_audience", fmt.Sprintf(
			"the token is for another audience: project one with audience %q (serviceAccountToken.audience in the pod's volume)", r.audience), err)
	case errors.Is(err, jwt.ErrTokenExpired):
		return reject("expired", "the token has expired: read the projected file again, the kubelet renews it", err)
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return reject("not_yet_valid", "the token is not valid yet: the clocks of the issuer and the exchange differ", err)
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return reject("wrong_issuer", "the token was made by another issuer than this exchange trusts", err)
	case errors.Is(err, jwt.ErrTokenMalformed):
		return reject("malformed", "this is not a service-account token: send the content of the projected file", err)
	default:
		return reject(ReasonBadSignature, "the token was not signed by the issuer that this exchange trusts", err)
	}
}

func reject(reason, message string, cause error) error {
	return &exchange.RejectedError{Reason: reason, Message: message, Cause: cause}
}
