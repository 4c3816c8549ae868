package shut_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// keyLife is how long a minted key lives.
const keyLife = 15 * time.Minute

// minted is a key and whose it is.
type minted struct {
	id, text string
	identity gateway.Identity
}

func (m minted) line() string { return "Authorization: Bearer " + m.text }

// issuer mints keys as the exchange does, by a clock of its own. It can also sign what no exchange would, with a signing
// key that is published like any other: what is refused then is refused for the one thing that is wrong with it.
type issuer struct {
	*clock
	store  keystore.Store
	signer *key.Signer

	kid     string
	private ed25519.PrivateKey
}

func newIssuer(t *testing.T, store keystore.Store, at *clock) *issuer {
	t.Helper()
	i := &issuer{clock: at, store: store, kid: key.NewID()}
	var err error
	i.signer, err = key.NewSigner(t.Context(), store, key.SignerOptions{
		Issuer: key.DefaultIssuer, Audience: key.DefaultAudience, MaxTTL: keyLife, Lifetime: time.Hour, Now: at.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	var public ed25519.PublicKey
	if public, i.private, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	if err := store.PublishVerificationKey(t.Context(), key.VerificationKey{ID: i.kid, Public: public, NotAfter: at.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	return i
}

// record stores that a key was minted for a pod of agents:run-1.
func (i *issuer) record(t *testing.T) keystore.Record {
	t.Helper()
	return i.recordFor(t, "run-1")
}

func (i *issuer) recordFor(t *testing.T, agent string) keystore.Record {
	t.Helper()
	now := i.Now()
	r := keystore.Record{
		ID: key.NewID(), Kind: keystore.Signed, Namespace: "agents:" + agent, Tenant: "agents", Agent: agent, Session: agent + "-pod",
		PodUID: "uid", ServiceAccount: "default", CreatedAt: now, ExpiresAt: now.Add(keyLife),
	}
	i.add(t, r)
	return r
}

func (i *issuer) add(t *testing.T, r keystore.Record) {
	t.Helper()
	if err := i.store.AddKey(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func identityOf(r keystore.Record) gateway.Identity {
	return gateway.Identity{Namespace: r.Namespace, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session, KeyID: r.ID}
}

// mint makes a good key.
func (i *issuer) mint(t *testing.T) minted {
	t.Helper()
	r := i.record(t)
	text, err := i.signer.Sign(key.Claims{
		ID: r.ID, Namespace: r.Namespace, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session, PodUID: r.PodUID,
		ServiceAccount: r.ServiceAccount, IssuedAt: r.CreatedAt, Expires: r.ExpiresAt,
	})
	if err != nil {
		t.Fatal(err)
	}
	return minted{r.ID, text, identityOf(r)}
}

// opaque makes a key of the kind that admins make.
func (i *issuer) opaque(t *testing.T, kind keystore.Kind, expires time.Time) minted {
	t.Helper()
	s := key.NewSecret()
	r := keystore.Record{ID: s.ID, Kind: kind, SecretHash: key.HashSecret(s.Text), CreatedAt: i.Now(), ExpiresAt: expires}
	if kind == keystore.Static {
		r.Namespace = "team"
	}
	i.add(t, r)
	return minted{s.ID, s.Text, identityOf(r)}
}

func (i *issuer) revoke(t *testing.T, m minted) minted {
	t.Helper()
	if err := i.store.Revoke(t.Context(), m.id, "a test", i.Now()); err != nil {
		t.Fatal(err)
	}
	return m
}

// members of a JSON object; nil in a change takes one out.
type members map[string]any

// forge signs a key of which one thing is changed. All else is as it should be, the record in the store included.
func (i *issuer) forge(t *testing.T, header, claims members) minted {
	t.Helper()
	r := i.record(t)
	text := i.sign(encode(t, i.header(), header), encode(t, claimsOf(r), claims))
	return minted{r.ID, text, identityOf(r)}
}

func (i *issuer) header() members { return members{"alg": "EdDSA", "typ": key.Type, "kid": i.kid} }

func claimsOf(r keystore.Record) members {
	return members{
		"iss": key.DefaultIssuer, "aud": key.DefaultAudience, "sub": r.Namespace, "jti": r.ID,
		"iat": r.CreatedAt.Unix(), "nbf": r.CreatedAt.Unix(), "exp": r.ExpiresAt.Unix(),
		"namespace": r.Namespace, "tenant": r.Tenant, "agent": r.Agent, "session": r.Session,
	}
}

// sign signs any two texts.
func (i *issuer) sign(header, claims string) string {
	input := part(header) + "." + part(claims)
	return input + "." + part(string(ed25519.Sign(i.private, []byte(input))))
}

func part(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// encode prints an object with a change to it. A json.RawMessage is printed as it is.
func encode(t *testing.T, object, change members) string {
	t.Helper()
	maps.Copy(object, change)
	maps.DeleteFunc(object, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// twice puts a member in front of an object that has one of that name already.
func twice(object, name string, value any) string {
	return fmt.Sprintf("{%q:%q,%s", name, value, object[1:])
}
