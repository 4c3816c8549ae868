package devcluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"sallyport/exchange/sandbox"
	"sallyport/internal/filelock"
)

// IssuerURL is the iss of the development issuer's tokens. Nothing is served there: .invalid names never resolve.
const IssuerURL = "https://issuer.sallyport-dev.invalid"

const keyID = "dev"

// Issuer signs tokens as a cluster does.
type Issuer struct {
	private *ecdsa.PrivateKey
	now     func() time.Time
}

// OpenIssuer reads the issuer's private key from the file at path, and makes it if there is none.
func OpenIssuer(ctx context.Context, path string, now func() time.Time) (_ *Issuer, err error) {
	lock, err := filelock.Wait(ctx, path+".lock") // two processes must not make two keys
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("development issuer's key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("development issuer's key: %s is not PEM: remove it to get a new one", path)
	}
	private, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("development issuer's key: %s: %w: remove it to get a new one", path, err)
	}
	return &Issuer{private: private, now: now}, nil
}

func makeKey(path string) ([]byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return text, os.WriteFile(path, text, 0o600)
}

// JWKS returns the key set that verifies the issuer's tokens.
func (i *Issuer) JWKS(ctx context.Context) (json.RawMessage, error) {
	k, err := jwkset.NewJWKFromKey(i.private.Public(), jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{ALG: jwkset.AlgES256, KID: keyID, USE: jwkset.UseSig},
	})
	if err != nil {
		return nil, fmt.Errorf("make key set: %w", err)
	}
	set := jwkset.NewMemoryStorage()
	if err := set.KeyWrite(ctx, k); err != nil {
		return nil, fmt.Errorf("make key set: %w", err)
	}
	text, err := set.JSONPublic(ctx)
	if err != nil {
		return nil, fmt.Errorf("make key set: %w", err)
	}
	return text, nil
}

// Token returns the token that a kubelet would project into the pod (KEP-1205), for one audience.
func (i *Issuer) Token(pod sandbox.Pod, audience string, ttl time.Duration) (string, error) {
	now := i.now()
	t := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": IssuerURL,
		"sub": "system:serviceaccount:" + pod.Namespace + ":" + pod.ServiceAccount,
		"aud": []string{audience},
		"iat": now.Unix(),
		"nbf": now.Unix(),
		"exp": now.Add(ttl).Unix(),
		"jti": uuid.NewString(),
		"kubernetes.io": map[string]any{
			"namespace":      pod.Namespace,
			"pod":            map[string]string{"name": pod.Name, "uid": pod.UID},
			"serviceaccount": map[string]string{"name": pod.ServiceAccount},
		},
	})
	t.Header["kid"] = keyID
	text, err := t.SignedString(i.private)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return text, nil
}
