package main

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/keystore"
)

// keystoreFlags are shared by the services that use the key store.
type keystoreFlags struct {
	Keystore string `help:"Where the keys are: sqlite:PATH, or postgres://USER@HOST/DATABASE for many replicas. A password is better in PGPASSFILE." default:"sqlite:/var/lib/sallyport/keys.db"`
}

func (f keystoreFlags) open(ctx context.Context) (keystore.Store, error) {
	const bound = 15 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	store, err := keystore.Open(ctx, f.Keystore, time.Now)
	if err != nil {
		return nil, fmt.Errorf("--keystore: %w", err)
	}
	return store, nil
}

// keyNameFlags are what exchange and extauthz must agree on.
type keyNameFlags struct {
	KeyIssuer   string `help:"The iss of keys; the same for exchange and extauthz." default:"sallyport"`
	KeyAudience string `help:"The aud of keys; the same for exchange and extauthz." default:"sallyport"`
}
