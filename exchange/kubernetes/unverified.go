package kubernetes

import (
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// claimed is what a token says, of which nothing was verified: it may refuse a token or word a refusal, never more.
type claimed struct{ jwt.RegisteredClaims }

// unverified reads a token's claims; ok is false if it is no JWT.
func unverified(token string) (c claimed, ok bool) {
	_, _, err := jwt.NewParser().ParseUnverified(token, &c)
	return c, err == nil
}

func (c claimed) expired(now time.Time) bool {
	return c.ExpiresAt != nil && !now.Before(c.ExpiresAt.Time)
}
