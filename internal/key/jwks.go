package key

import (
	"encoding/base64"
	"encoding/json"
)

// jwk is RFC 8037, section 2: an Ed25519 public key. Public halves only, so a struct of our own cannot leak a private one.
type jwk struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	X         string `json:"x"`
}

// JWKS returns the JSON Web Key Set (RFC 7517) of the published keys.
func JWKS(keys []VerificationKey) ([]byte, error) {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: make([]jwk, 0, len(keys))}
	for _, k := range keys {
		set.Keys = append(set.Keys, jwk{
			KeyType: "OKP", Curve: "Ed25519", KeyID: k.ID, Use: "sig", Algorithm: "EdDSA",
			X: base64.RawURLEncoding.EncodeToString(k.Public),
		})
	}
	return json.Marshal(set)
}
