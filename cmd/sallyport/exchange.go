package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/exchange"
	"sallyport/exchange/devcluster"
	"sallyport/exchange/httpapi"
	"sallyport/exchange/oidc"
	"sallyport/exchange/sandbox"
	"sallyport/internal/filelock"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
	"sallyport/internal/serve"
	"sallyport/internal/telemetry"
)

// mintFlags say which tokens become which keys.
type mintFlags struct {
	Audience           string        `help:"The audience that pods' tokens are projected for." default:"recall"`
	KeyTTL             time.Duration `help:"How long a key lives." default:"15m"`
	SigningKeyLifetime time.Duration `help:"How long a signing key signs before the next one does." default:"6h"`
	RequireClaim       bool          `help:"Refuse pods that no SandboxClaim holds."`
}

func (f mintFlags) validate() error {
	const shortest, longest = time.Second, 24 * time.Hour
	switch {
	case f.KeyTTL < shortest || f.KeyTTL > longest:
		return fmt.Errorf("--key-ttl %s: give between %s and %s", f.KeyTTL, shortest, longest)
	case f.SigningKeyLifetime < f.KeyTTL:
		return fmt.Errorf("--signing-key-lifetime %s is shorter than a key's life, %s", f.SigningKeyLifetime, f.KeyTTL)
	case f.Audience == "":
		return errors.New("--audience is empty: name the one that pods' tokens are projected for")
	}
	return nil
}

type exchangeCommand struct {
	Listen string `help:"Where to serve: unix:PATH or HOST:PORT." default:"unix:/run/sallyport/exchange.sock"`
	metricsFlags
	keystoreFlags
	keyNameFlags
	mintFlags
	kubeFlags
	DevCluster   string `help:"Trust the development cluster in this directory, as 'up' and 'dev' use it, and no other." placeholder:"DIR"`
	AdminKeyFile string `help:"File with the first admin key; made if there is none. Only the key's hash is stored." placeholder:"FILE"`
}

// Run serves the exchange until the process is told to end.
func (c *exchangeCommand) Run(env *environment) error {
	env.announce()
	store, err := c.open(env.ctx)
	if err != nil {
		return err
	}
	defer env.close(store.Close)
	spans, done, err := env.tracing("exchange")
	if err != nil {
		return err
	}
	defer done()
	store = spans.Keystore(store, c.Keystore)
	v, err := c.voucher(env, store, spans)
	if err != nil {
		return err
	}
	defer env.close(v.close)
	if c.AdminKeyFile != "" {
		if err := ensureAdminKey(env.ctx, store, c.AdminKeyFile); err != nil {
			return err
		}
	}
	outer, err := newOuterDoor(env.ctx, store, v, c.keyNameFlags, c.mintFlags, spans, env.log)
	if err != nil {
		return err
	}
	l, err := serve.Listen(env.ctx, c.Listen)
	if err != nil {
		return err
	}
	env.log.Info("exchange is ready", "listen", c.Listen)
	scraped, err := c.metrics(env, outer.handler.Collector())
	if err != nil {
		return err
	}
	return runParts(env.ctx, append(outer.allParts(l), scraped...))
}

// voucher is the development cluster's if one is named, else the Kubernetes cluster's.
func (c *exchangeCommand) voucher(env *environment, store keystore.Store, spans *telemetry.Tracing) (voucher, error) {
	if c.DevCluster == "" {
		v, err := c.kubeFlags.voucher(store, c.mintFlags, spans, env.log)
		if err != nil {
			return voucher{}, fmt.Errorf("%w (--kubeconfig FILE, or --dev-cluster DIR on a laptop)", err)
		}
		return v, nil
	}
	cluster, err := openDevCluster(env.ctx, c.DevCluster)
	if err != nil {
		return voucher{}, err
	}
	v, err := cluster.voucher(env.ctx, store, c.mintFlags, env.log)
	if err != nil {
		return voucher{}, errors.Join(err, cluster.Close())
	}
	v.closer = cluster.Close
	return v, nil
}

// devCluster is the development cluster and its issuer.
type devCluster struct {
	*devcluster.Cluster
	issuer *devcluster.Issuer
}

func openDevCluster(ctx context.Context, dir string) (*devCluster, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make development cluster's directory: %w", err)
	}
	cluster, err := devcluster.Open(ctx, filepath.Join(dir, "dev-cluster.db"))
	if err != nil {
		return nil, err
	}
	issuer, err := devcluster.OpenIssuer(ctx, filepath.Join(dir, "dev-issuer.key"), time.Now)
	if err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return &devCluster{Cluster: cluster, issuer: issuer}, nil
}

// voucher says whose a token is, and brings what has to run for that.
type voucher struct {
	authenticator exchange.Authenticator
	admins        exchange.Admins         // nil: admin keys alone
	minted        func(r keystore.Record) // nil: nobody wants to hear
	parts         []part
	closer        func() error // nil: there is nothing to close
}

func (v voucher) close() error {
	if v.closer == nil {
		return nil
	}
	return v.closer()
}

// voucher makes the development cluster say whose a token is.
func (c *devCluster) voucher(ctx context.Context, store keystore.Store, f mintFlags, log *slog.Logger) (voucher, error) {
	jwks, err := c.issuer.JWKS(ctx)
	if err != nil {
		return voucher{}, err
	}
	reviewer, err := oidc.New(jwks, oidc.Options{Issuer: devcluster.IssuerURL, Audience: f.Audience, Now: time.Now})
	if err != nil {
		return voucher{}, err
	}
	rules := sandbox.Options{RequireClaim: f.RequireClaim}
	return voucher{
		authenticator: &exchange.PodAuthenticator{Reviewer: reviewer, Cluster: c, Options: rules},
		parts:         []part{quietly(func(ctx context.Context) { c.Reap(ctx, store, time.Now, log) })},
	}, nil
}

// outerDoor is the exchange with all that runs for it.
type outerDoor struct {
	voucher
	exchange *exchange.Exchange
	handler  *httpapi.Handler
	spans    *telemetry.Tracing
	signer   *key.Signer
	keys     *key.KeySet
	log      *slog.Logger
}

func newOuterDoor(ctx context.Context, store keystore.Store, v voucher, names keyNameFlags, f mintFlags, spans *telemetry.Tracing, log *slog.Logger) (*outerDoor, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	signer, err := key.NewSigner(ctx, store, key.SignerOptions{
		Issuer: names.KeyIssuer, Audience: names.KeyAudience, MaxTTL: f.KeyTTL, Lifetime: f.SigningKeyLifetime, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	keys := key.NewKeySet(store, time.Now)
	x := exchange.New(exchange.Options{
		Authenticator: v.authenticator,
		Admins:        v.admins,
		Minted:        v.minted,
		Store:         store,
		Signer:        signer,
		Verifier:      key.NewVerifier(keys, names.KeyIssuer, names.KeyAudience, time.Now),
		KeyTTL:        f.KeyTTL,
		Now:           time.Now,
		Log:           log,
	})
	return &outerDoor{voucher: v, exchange: x, handler: httpapi.New(x, store.Ping, log), spans: spans, signer: signer, keys: keys, log: log}, nil
}

func (o *outerDoor) allParts(l net.Listener) []part {
	return append([]part{
		func(ctx context.Context) error { return serve.HTTP(ctx, l, o.spans.Handler(o.handler, nil), o.log) },
		quietly(o.exchange.Run),
		quietly(func(ctx context.Context) {
			o.signer.Run(ctx, func(err error) {
				o.log.Warn("the signing key could not be replaced; the old one goes on", "error", err)
			})
		}),
		quietly(func(ctx context.Context) {
			o.keys.Run(ctx, func(err error) { o.log.Warn("verification keys could not be read; those known stay", "error", err) })
		}),
	}, o.parts...)
}

// ensureAdminKey makes the store know the admin key in the file, which is made if there is none.
func ensureAdminKey(ctx context.Context, store keystore.Store, path string) (err error) {
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeAdminKey(ctx, path)
	}
	if err != nil {
		return fmt.Errorf("admin key: %w", err)
	}
	ensure := func() error { return exchange.EnsureAdminKey(ctx, store, strings.TrimSpace(string(text)), time.Now()) }
	err = ensure()
	if err != nil {
		err = ensure() // another replica, started at the same time, may have stored it between the look and the write
	}
	if err != nil {
		return fmt.Errorf("admin key in %s: %w", path, err)
	}
	return nil
}

// makeAdminKey writes a new key to path, unless another process has done so meanwhile.
func makeAdminKey(ctx context.Context, path string) (_ []byte, err error) {
	lock, err := filelock.Wait(ctx, path+".lock")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path) //nolint:gosec // the operator names the file
	}
	if err != nil {
		return nil, err
	}
	text := []byte(key.NewSecret().Text + "\n")
	_, err = f.Write(text)
	return text, errors.Join(err, f.Sync(), f.Close())
}
