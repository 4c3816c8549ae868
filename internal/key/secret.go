package key

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// secretPrefix begins every opaque key: "rcl_<id>_<secret>" is the form that the Memory API gives (section 2).
const secretPrefix = "rcl_"

// secretBytes of randomness make guessing hopeless, so that a plain hash is enough to keep (no password hashing needed).
const secretBytes = 32

// Secret is an opaque key: an admin key, or one that an admin made for a namespace.
type Secret struct {
	ID   string
	Text string // what its holder presents; shown once, never stored
}

// NewSecret makes a random opaque key.
func NewSecret() Secret {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	id := NewID()
	return Secret{ID: id, Text: secretPrefix + id + "_" + hex.EncodeToString(b[:])}
}

// ParseSecret returns the id of an opaque key, and false if presented has not the form of one.
func ParseSecret(presented string) (id string, ok bool) {
	const idLen, secretLen = 2 * idBytes, 2 * secretBytes
	rest, ok := strings.CutPrefix(presented, secretPrefix)
	if !ok || len(rest) != idLen+1+secretLen || rest[idLen] != '_' {
		return "", false
	}
	for i := range len(rest) {
		if c := rest[i]; i != idLen && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", false
		}
	}
	return rest[:idLen], true
}

// LooksLikeSecret says whether presented claims to be an opaque key, well-formed or not.
func LooksLikeSecret[T string | []byte](presented T) bool {
	return len(presented) >= len(secretPrefix) && string(presented[:len(secretPrefix)]) == secretPrefix
}

// HashSecret returns what is stored of an opaque key.
func HashSecret(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// MatchesHash compares in constant time.
func MatchesHash(text string, hash []byte) bool {
	return subtle.ConstantTimeCompare(HashSecret(text), hash) == 1
}
