package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// world is a key store with keys in it, and a directory for sockets beside it.
type world struct {
	dir     string
	store   string   // its address
	keys    []string // that are good for longer than any run, in random order
	revoked string   // one that is not
	jwks    []byte

	ids       []identity // of the keys, in their order
	revokedID identity
}

// identity is what a key says.
type identity struct{ ID, Namespace, Tenant, Agent, Session string }

// keyLife is longer than a run: what is measured is not how keys end.
const keyLife = 6 * time.Hour

// newWorld mints n keys. remove takes it away again.
func newWorld(ctx context.Context, n int) (*world, error) {
	// In memory if that can be: filling the store is not measured, and what is read of it comes from memory anyway.
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "sallyport-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	w := &world{dir: dir, store: "sqlite:" + filepath.Join(dir, "keys.db")}
	if err := w.fill(ctx, n); err != nil {
		return nil, errors.Join(fmt.Errorf("fill the key store: %w", err), w.remove())
	}
	return w, nil
}

func (w *world) remove() error { return os.RemoveAll(w.dir) } //nolint:gosec // it made it

// socket returns a path for a unix socket.
func (w *world) socket(name string) string { return filepath.Join(w.dir, name+".sock") }

func (w *world) fill(ctx context.Context, n int) error {
	store, err := keystore.Open(ctx, w.store, time.Now)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // every write has said that it is stored
	signer, err := key.NewSigner(ctx, store, key.SignerOptions{
		Issuer: key.DefaultIssuer, Audience: key.DefaultAudience, MaxTTL: keyLife, Lifetime: keyLife, Now: time.Now,
	})
	if err != nil {
		return err
	}
	w.keys, w.ids = make([]string, n), make([]identity, n)
	for i := range n {
		if w.keys[i], w.ids[i], err = mint(ctx, store, signer, i); err != nil {
			return err
		}
	}
	// So that the order of use is not the order in the store.
	rand.Shuffle(n, func(i, j int) { //nolint:gosec // an order, not a secret
		w.keys[i], w.keys[j] = w.keys[j], w.keys[i]
		w.ids[i], w.ids[j] = w.ids[j], w.ids[i]
	})
	revoked, id, err := mint(ctx, store, signer, n)
	if err != nil {
		return err
	}
	w.revoked, w.revokedID = revoked, id
	if err := store.Revoke(ctx, id.ID, "for the benchmark", time.Now()); err != nil {
		return err
	}
	public, err := store.VerificationKeys(ctx)
	if err != nil {
		return err
	}
	w.jwks, err = key.JWKS(public)
	return err
}

// mint makes one key, as an exchange does for a pod.
func mint(ctx context.Context, store keystore.Store, signer *key.Signer, i int) (string, identity, error) {
	now := time.Now()
	id := identity{
		ID: key.NewID(), Tenant: "agents", Agent: fmt.Sprintf("research-%06d", i), Session: fmt.Sprintf("research-%06d-x7k2p", i),
	}
	id.Namespace = id.Tenant + ":" + id.Agent
	uid := fmt.Sprintf("6f1c2a54-9b7e-4d63-8a10-%012x", i)
	text, err := signer.Sign(key.Claims{
		ID: id.ID, Namespace: id.Namespace, Tenant: id.Tenant, Agent: id.Agent, Session: id.Session,
		PodUID: uid, ServiceAccount: "agent", IssuedAt: now, Expires: now.Add(keyLife),
	})
	if err != nil {
		return "", id, err
	}
	return text, id, store.AddKey(ctx, keystore.Record{
		ID: id.ID, Kind: keystore.Signed, Namespace: id.Namespace, Tenant: id.Tenant, Agent: id.Agent, Session: id.Session,
		PodNamespace: id.Tenant, PodUID: uid, ServiceAccount: "agent", CreatedAt: now, ExpiresAt: now.Add(keyLife),
	})
}
