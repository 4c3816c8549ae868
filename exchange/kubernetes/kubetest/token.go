package kubetest

import (
	"crypto/rand"
	"crypto/rsa"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// Resign returns the token with changed claims, signed anew with the cluster's own key: a token that expired long ago, for
// one, which nobody wants to wait for.
func (c *Cluster) Resign(t testing.TB, token string, change func(claims jwt.MapClaims)) string {
	t.Helper()
	return resign(t, c.creds.Accounts, token, change)
}

// Forge is Resign with a key that the cluster does not know.
func (c *Cluster) Forge(t testing.TB, token string, change func(claims jwt.MapClaims)) string {
	t.Helper()
	stranger, err := rsa.GenerateKey(rand.Reader, c.creds.Accounts.N.BitLen())
	if err != nil {
		t.Fatal(err)
	}
	return resign(t, stranger, token, change)
}

func resign(t testing.TB, signer *rsa.PrivateKey, token string, change func(claims jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{}
	old, _, err := jwt.NewParser().ParseUnverified(token, claims)
	if err != nil {
		t.Fatal(err)
	}
	change(claims)
	again := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	again.Header["kid"] = old.Header["kid"]
	text, err := again.SignedString(signer)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
