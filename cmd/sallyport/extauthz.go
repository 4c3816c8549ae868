package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"sallyport/extauthz"
	"sallyport/extauthz/checkserver"
	"sallyport/extauthz/httpcheck"
	"sallyport/extauthz/tuning"
	"sallyport/gateway"
	"sallyport/internal/heap"
	"sallyport/internal/key"
	"sallyport/internal/keystore"
	"sallyport/internal/serve"
	"sallyport/internal/telemetry"
)

// doorFlags tune the inner door.
type doorFlags struct {
	RevocationCacheTTL  time.Duration `help:"How long a key may be honoured after it was revoked, if the key store cannot push." default:"30s"`
	RevocationCacheSize int           `help:"How many keys' states are kept." default:"16384"`
	VerifiedCacheSize   int64         `help:"How many verified signatures are remembered." default:"16384"`
	HeaderPrefix        string        `help:"Begins the name of every trusted header." default:"x-sallyport-"`
	LogAllows           int           `help:"Lines a second that the log has of allowed requests, at most." default:"0"`
	LogDenials          int           `help:"Lines a second that it has of denials, of each reason, at most." default:"10"`
}

// extauthzCommand serves the inner door, or talks to one that runs.
type extauthzCommand struct {
	Serve extauthzServeCommand `cmd:"" default:"withargs" help:"Serve the inner door (the default)."`
	Set   extauthzSetCommand   `cmd:"" help:"Change a running door: sallyport extauthz set ttl=10s"`
	Stats extauthzStatsCommand `cmd:"" help:"Show how the caches of a running door do, and what other TTLs would cost."`
}

type extauthzServeCommand struct {
	Listen      string `help:"Where Envoy asks: unix:PATH or HOST:PORT." default:"unix:/run/sallyport/extauthz.sock"`
	HTTPListen  string `help:"Where gateways that ask over HTTP ask, at /check: unix:PATH or HOST:PORT." name:"http-listen" placeholder:"ADDRESS"`
	DecisionLog string `help:"Where decisions are logged: log, among the service's own lines; or stdout, as JSON lines of their own." enum:"log,stdout" default:"log"`
	AdminListen string `help:"Where 'extauthz set' and 'stats' find it: unix:PATH, or a loopback HOST:PORT. Empty for nowhere." default:"unix:/run/sallyport/extauthz-admin.sock"`
	metricsFlags
	keystoreFlags
	keyNameFlags
	doorFlags
}

// Run serves checks until the process is told to end.
func (c *extauthzServeCommand) Run(env *environment) error {
	env.announce()
	if c.AdminListen != "" {
		if err := gateway.CheckTrust(c.AdminListen, nil); err != nil {
			return fmt.Errorf("--admin-listen: %w", err)
		}
	}
	store, err := c.open(env.ctx)
	if err != nil {
		return err
	}
	defer env.close(store.Close)
	spans, done, err := env.tracing("extauthz")
	if err != nil {
		return err
	}
	defer done()
	door, err := newDoor(spans.Keystore(store, c.Keystore), c.keyNameFlags, c.doorFlags, spans, c.decisionLog(env))
	if err != nil {
		return err
	}
	defer door.close()
	l, err := serve.Listen(env.ctx, c.Listen)
	if err != nil {
		return err
	}
	parts := append(door.parts(l), quietly(func(ctx context.Context) { heap.Keep(ctx, heap.DefaultRoom) }), env.followSettings(func(a *app) error { return door.apply(a.Extauthz.Serve.doorFlags) }))
	scraped, err := c.metrics(env, door.tuning.Collector())
	if err != nil {
		return err
	}
	parts = append(parts, scraped...)
	for _, extra := range []struct {
		address string
		handler http.Handler
	}{{c.HTTPListen, spans.Handler(door.http, func(*http.Request) string { return httpcheck.Path })}, {c.AdminListen, door.tuning.Handler()}} {
		if extra.address == "" {
			continue
		}
		l, err := serve.Listen(env.ctx, extra.address)
		if err != nil {
			return err
		}
		parts = append(parts, func(ctx context.Context) error { return serve.HTTP(ctx, l, extra.handler, env.log) })
	}
	env.log.Info("extauthz is ready", "listen", c.Listen)
	return runParts(env.ctx, parts)
}

// decisionLog is where decisions are logged, and what else the door says.
func (c *extauthzServeCommand) decisionLog(env *environment) doorLogs {
	logs := doorLogs{decisions: env.log, rest: env.log}
	if c.DecisionLog == "stdout" {
		logs.decisions = slog.New(slog.NewJSONHandler(env.stdout, nil))
	}
	return logs
}

type doorLogs struct{ decisions, rest *slog.Logger }

// door is the inner door with all that runs for it.
type door struct {
	spans    *telemetry.Tracing
	service  *checkserver.Service
	http     *httpcheck.Handler
	keys     *key.KeySet
	verified *extauthz.VerifiedCache
	revoked  *extauthz.RevocationCache
	tuning   *tuning.Door
	store    keystore.Store
	log      *slog.Logger
}

func newDoor(store keystore.Store, names keyNameFlags, f doorFlags, spans *telemetry.Tracing, logs doorLogs) (*door, error) {
	headers, err := gateway.NewHeaders(f.HeaderPrefix)
	if err != nil {
		return nil, fmt.Errorf("--header-prefix: %w", err)
	}
	decisions, err := extauthz.NewDecisionLog(logs.decisions, extauthz.LogRates{Allows: f.LogAllows, Denials: f.LogDenials}, time.Now, telemetry.TraceID)
	if err != nil {
		return nil, err
	}
	d := &door{spans: spans, store: store, log: logs.rest, keys: key.NewKeySet(store, time.Now)}
	d.revoked, err = extauthz.NewRevocationCache(store, extauthz.RevocationOptions{TTL: f.RevocationCacheTTL, Size: f.RevocationCacheSize, Now: time.Now})
	if err != nil {
		return nil, err
	}
	verifier := key.NewVerifier(d.keys, names.KeyIssuer, names.KeyAudience, time.Now)
	d.verified, err = extauthz.NewVerifiedCache(verifier, f.VerifiedCacheSize, time.Now)
	if err != nil {
		d.revoked.Close()
		return nil, err
	}
	authorizer := extauthz.NewAuthorizer(d.verified, d.revoked, time.Now)
	d.service = checkserver.NewService(authorizer, headers, decisions)
	d.http = httpcheck.New(authorizer, headers, decisions)
	d.tuning = tuning.NewDoor(authorizer, d.revoked, d.verified, decisions, time.Now, logs.rest)
	return d, nil
}

// apply changes what can be changed while it runs; HeaderPrefix is none of that.
func (d *door) apply(f doorFlags) error {
	return d.tuning.Apply(tuning.Settings{
		RevocationCacheTTL: &f.RevocationCacheTTL, RevocationCacheSize: &f.RevocationCacheSize, VerifiedCacheSize: &f.VerifiedCacheSize,
		LogAllows: &f.LogAllows, LogDenials: &f.LogDenials,
	}, "the settings file")
}

func (d *door) close() {
	d.verified.Close()
	d.revoked.Close()
}

func (d *door) parts(l net.Listener) []part {
	return []part{
		func(ctx context.Context) error { return d.service.Serve(ctx, l, d.spans.GRPCServer()) },
		quietly(func(ctx context.Context) {
			d.keys.Run(ctx, func(err error) { d.log.Warn("verification keys could not be read; those known stay", "error", err) })
		}),
		quietly(d.followRevocations),
	}
}

// followRevocations hears of revocations as they happen. While it cannot, the cache's TTL is the promise.
func (d *door) followRevocations(ctx context.Context) {
	again(ctx, func(ctx context.Context) error {
		return d.store.WatchRevocations(ctx, d.revoked.Revoke, d.revoked.Forget)
	}, func(err error, next time.Duration) {
		d.log.Warn("revocations are not pushed just now; a revoked key may be honoured until the cache's TTL is over", "error", err, "next_try", next)
	})
}
