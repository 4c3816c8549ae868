package main

import (
	"context"
	"fmt"
	"time"

	"sallyport/exchange/devcluster"
	"sallyport/internal/keystore"
	"sallyport/internal/periodic"
	"sallyport/internal/serve"
	"sallyport/internal/telemetry"
)

// services are all of `up` but Envoy. They listen on unix sockets alone.
type services struct {
	parts        []part
	tokenFile    string // of the example pod; empty with a real cluster
	adminKeyFile string
	keystore     string // its address
	closers      []func() error
}

// startServices opens the stores and the sockets; what has to run is in parts.
func startServices(env *environment, dir *dataDir, c *upCommand) (_ *services, err error) {
	s := &services{adminKeyFile: dir.file("admin.key")}
	defer func() {
		if err != nil {
			s.close(env)
		}
	}()
	store, err := s.startKeystore(env, dir, c.Keystore)
	if err != nil {
		return nil, err
	}
	spans, err := s.tracing(env, "exchange")
	if err != nil {
		return nil, err
	}
	v, err := s.voucher(env, dir, c, spans.Keystore(store, s.keystore), spans)
	if err != nil {
		return nil, err
	}
	for _, start := range []func() error{
		func() error { return s.startExchange(env, dir, c, spans.Keystore(store, s.keystore), v, spans) },
		func() error { return s.startExtauthz(env, dir, c, store) },
		func() error { return s.startBackend(env, dir, c) },
	} {
		if err := start(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// close ends the use of the stores, in the order opposite to how they were opened.
func (s *services) close(env *environment) {
	for i := len(s.closers) - 1; i >= 0; i-- {
		env.close(s.closers[i])
	}
}

// tracing returns the spans of a service, nil if nobody asks for any.
func (s *services) tracing(env *environment, service string) (*telemetry.Tracing, error) {
	spans, done, err := env.tracing(service)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { done(); return nil })
	return spans, nil
}

// startKeystore opens the store at address, or the data directory's own if that is empty.
func (s *services) startKeystore(env *environment, dir *dataDir, address string) (keystore.Store, error) {
	where := "as --keystore says" // it may hold a password
	if address == "" {
		where = dir.file("keys.db")
		address = "sqlite:" + where
	}
	s.keystore = address
	store, err := keystoreFlags{Keystore: address}.open(env.ctx)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, store.Close)
	if err := ensureAdminKey(env.ctx, store, s.adminKeyFile); err != nil {
		return nil, err
	}
	say(env.stdout, "keystore", where)
	return store, nil
}

// voucher is the development cluster's, with an example pod in it, unless a kubeconfig names a real cluster.
func (s *services) voucher(env *environment, dir *dataDir, c *upCommand, store keystore.Store, spans *telemetry.Tracing) (voucher, error) {
	log := env.log.With("part", "exchange")
	if c.Kubeconfig != "" {
		say(env.stdout, "cluster", "as in "+c.Kubeconfig)
		return c.voucher(store, c.mintFlags, spans, log)
	}
	cluster, err := openDevCluster(env.ctx, dir.path)
	if err != nil {
		return voucher{}, err
	}
	s.closers = append(s.closers, cluster.Close)
	s.tokenFile = dir.file("demo.token")
	if err := s.startExamplePod(env, cluster, c.Audience); err != nil {
		return voucher{}, err
	}
	return cluster.voucher(env.ctx, store, c.mintFlags, log)
}

// The example pod's token is made anew before it expires, as a kubelet does.
const (
	exampleTokenTTL   = time.Hour
	exampleTokenEvery = 20 * time.Minute
)

func (s *services) startExamplePod(env *environment, cluster *devCluster, audience string) error {
	write := func(ctx context.Context) error {
		pod, err := cluster.EnsurePod(ctx, devcluster.PodSpec{Namespace: "agents", Name: "demo", ServiceAccount: "default"})
		if err != nil {
			return fmt.Errorf("example pod: %w", err)
		}
		token, err := cluster.issuer.Token(pod, audience, exampleTokenTTL)
		if err != nil {
			return err
		}
		return writeWhole(s.tokenFile, []byte(token+"\n"))
	}
	if err := write(env.ctx); err != nil {
		return err
	}
	s.parts = append(s.parts, quietly(func(ctx context.Context) {
		periodic.Run(ctx, exampleTokenEvery, write, func(err error) {
			env.log.Warn("the example pod's token could not be made anew; trying again later", "error", err)
		})
	}))
	say(env.stdout, "issuer", "development cluster, example pod agents/demo")
	return nil
}

func (s *services) startExchange(env *environment, dir *dataDir, c *upCommand, store keystore.Store, v voucher, spans *telemetry.Tracing) error {
	outer, err := newOuterDoor(env.ctx, store, v, c.keyNameFlags, c.mintFlags, spans, env.log.With("part", "exchange"))
	if err != nil {
		return err
	}
	l, err := serve.Listen(env.ctx, "unix:"+dir.socket("exchange"))
	if err != nil {
		return err
	}
	s.parts = append(s.parts, outer.allParts(l)...)
	say(env.stdout, "exchange", dir.socket("exchange"))
	return nil
}

func (s *services) startExtauthz(env *environment, dir *dataDir, c *upCommand, store keystore.Store) error {
	spans, err := s.tracing(env, "extauthz")
	if err != nil {
		return err
	}
	log := env.log.With("part", "extauthz")
	inner, err := newDoor(spans.Keystore(store, s.keystore), c.keyNameFlags, c.doorFlags, spans, doorLogs{decisions: log, rest: log})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { inner.close(); return nil })
	l, err := serve.Listen(env.ctx, "unix:"+dir.socket("extauthz"))
	if err != nil {
		return err
	}
	admin, err := serve.Listen(env.ctx, "unix:"+dir.socket("extauthz-admin"))
	if err != nil {
		return err
	}
	s.parts = append(s.parts, inner.parts(l)...)
	s.parts = append(s.parts,
		func(ctx context.Context) error { return serve.HTTP(ctx, admin, inner.tuning.Handler(), env.log) },
		env.followSettings(func(a *app) error { return inner.apply(a.Up.doorFlags) }),
	)
	say(env.stdout, "extauthz", dir.socket("extauthz"))
	return nil
}

func (s *services) startBackend(env *environment, dir *dataDir, c *upCommand) error {
	if c.Backend != "" {
		say(env.stdout, "backend", c.Backend+" (yours)")
		return nil
	}
	spans, err := s.tracing(env, "memory")
	if err != nil {
		return err
	}
	where := memoryStoreFlags{Store: "sqlite:" + dir.file("memory.db")}
	m, err := newMemoryService(env.ctx, where, c.memoryFlags, c.HeaderPrefix, spans, env.log.With("part", "memory"))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, m.store.Close)
	l, err := serve.Listen(env.ctx, "unix:"+dir.socket("memory"))
	if err != nil {
		return err
	}
	s.parts = append(s.parts, m.parts(l)...)
	say(env.stdout, "memory", dir.file("memory.db"))
	return nil
}
