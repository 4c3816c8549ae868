// Package key says what a Sallyport key is and how one is made and checked.
//
// A key that a sandbox gets is a JWT signed with Ed25519, with a typ of its own so that no other JWT passes for one. The
// signing key lives in the memory of the process that made it (Signer) and nowhere else; its public half is published
// before the first signature and stays published until the last key it signed has expired (KeySet). A key that an admin
// makes is an opaque secret of which only the hash is kept (Secret).
//
// The package does not know which keys exist or are revoked (internal/keystore), who may have one (exchange), or what a
// request may do with one (extauthz).
package key

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Type is the JWT typ header of a key: RFC 8725, section 3.11, explicit typing.
const Type = "sallyport-key+jwt"

// MaxBytes bounds a presented key. Ours are under 1 KiB; a longer one is refused before anything is decoded.
const MaxBytes = 4096

// Leeway is how far apart the clocks of exchange and extauthz may be (netbird#6385: none at all makes four seconds of
// skew an outage).
const Leeway = 5 * time.Second

// Names that a key carries unless an operator chose others; exchange and extauthz must agree on them.
const (
	DefaultIssuer   = "sallyport"
	DefaultAudience = "sallyport"
)

// idBytes gives ids of 16 hex digits, the form that the Memory API's clients know (section 2).
const idBytes = 8

// NewID returns a random key id.
func NewID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}
