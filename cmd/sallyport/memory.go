package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"sallyport/gateway"
	"sallyport/internal/serve"
	"sallyport/internal/telemetry"
	"sallyport/memory"
	"sallyport/memory/api"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

// surfaceFlags choose the tools.
type surfaceFlags struct {
	Surface string `help:"The tools that memory serves: typed, with a fixed vocabulary; open, whose writes may define predicates; or text, plain words." default:"open" enum:"typed,open,text"`
}

func (f surfaceFlags) surface() (api.Surface, belief.Vocabulary) {
	switch f.Surface {
	case "typed":
		return api.Typed(false), belief.Closed()
	case "text":
		return api.Text(), belief.Open()
	}
	return api.Typed(true), belief.Open()
}

type memoryCommand struct {
	Serve  memoryServeCommand  `cmd:"" default:"withargs" help:"Serve the memory backend (the default)."`
	Export memoryExportCommand `cmd:"" help:"Write all that a namespace holds as JSON lines."`
	Import memoryImportCommand `cmd:"" help:"Read what export wrote, or a server of the Memory API listed, into an empty namespace."`
	Erase  memoryEraseCommand  `cmd:"" help:"Erase a namespace for good."`
}

// memoryStoreFlags say where memories are.
type memoryStoreFlags struct {
	Store string `help:"Where memories are: sqlite:PATH, or postgres://USER@HOST/DATABASE for many replicas. A password is better in PGPASSFILE." default:"sqlite:/var/lib/sallyport/memory.db"`
}

// open opens the store and brings its schema up to date.
func (f memoryStoreFlags) open(ctx context.Context) (memory.Store, error) {
	const bound = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var store memory.Store
	var err error
	if path, ok := strings.CutPrefix(f.Store, "sqlite:"); ok && path != "" {
		store, err = sqlitestore.Open(ctx, path)
	} else if strings.HasPrefix(f.Store, "postgres://") || strings.HasPrefix(f.Store, "postgresql://") {
		store, err = pgstore.Open(ctx, f.Store)
	} else {
		err = errors.New("give sqlite:PATH, such as sqlite:/var/lib/sallyport/memory.db, or postgres://USER@HOST/DATABASE")
	}
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return store, nil
}

type memoryServeCommand struct {
	Listen string `help:"Where the gateway finds it: unix:PATH or HOST:PORT. Beyond loopback it wants the gateway's certificate." default:"unix:/run/sallyport/memory.sock"`
	memoryStoreFlags
	memoryFlags
	metricsFlags
	HeaderPrefix string   `help:"Begins the name of every trusted header." default:"x-sallyport-"`
	TLSCert      string   `help:"This backend's certificate." placeholder:"FILE"`
	TLSKey       string   `help:"Its key." placeholder:"FILE"`
	GatewayCA    string   `help:"Who signs the gateway's certificate." placeholder:"FILE"`
	GatewayName  []string `help:"A DNS or URI name in the gateway's certificate." placeholder:"NAME"`
}

// Run serves the memory until the process is told to end.
func (c *memoryServeCommand) Run(env *environment) error {
	env.announce()
	config, err := c.tls()
	if err != nil {
		return err
	}
	if err := gateway.CheckTrust(c.Listen, config); err != nil {
		return err
	}
	spans, done, err := env.tracing("memory")
	if err != nil {
		return err
	}
	defer done()
	m, err := newMemoryService(env.ctx, c.memoryStoreFlags, c.memoryFlags, c.HeaderPrefix, spans, env.log)
	if err != nil {
		return err
	}
	defer env.close(m.store.Close)
	l, err := serve.Listen(env.ctx, c.Listen)
	if err != nil {
		return err
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	scraped, err := c.metrics(env, m.service.Collector())
	if err != nil {
		return err
	}
	env.log.Info("memory is ready", "listen", c.Listen)
	return runParts(env.ctx, append(m.parts(l), scraped...))
}

// tls returns nil where no certificate is given.
func (c *memoryServeCommand) tls() (*tls.Config, error) {
	given := 0
	for _, file := range []string{c.TLSCert, c.TLSKey, c.GatewayCA} {
		if file != "" {
			given++
		}
	}
	switch given {
	case 0:
		return nil, nil //nolint:nilnil // no TLS is a valid choice
	case 3: //nolint:mnd // all of them
		return gateway.MutualTLS(c.TLSCert, c.TLSKey, c.GatewayCA, c.GatewayName)
	default:
		return nil, errors.New("give --tls-cert, --tls-key and --gateway-ca together, or none of them")
	}
}

// memoryService is the memory with all that runs for it.
type memoryService struct {
	store   memory.Store
	service *memory.Service
	handler http.Handler
	log     *slog.Logger
}

func newMemoryService(ctx context.Context, where memoryStoreFlags, f memoryFlags, headerPrefix string, spans *telemetry.Tracing, log *slog.Logger) (*memoryService, error) {
	headers, err := gateway.NewHeaders(headerPrefix)
	if err != nil {
		return nil, fmt.Errorf("--header-prefix: %w", err)
	}
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	store, err := where.open(ctx)
	if err != nil {
		return nil, err
	}
	surface, vocabulary := f.surface()
	options.Vocabulary, options.Logger = &vocabulary, log
	service := memory.NewService(store, options)
	handler := spans.Handler(api.NewHandler(service, surface, headers, log), func(r *http.Request) string { return surface.Route(r.URL.Path) })
	return &memoryService{store: store, service: service, handler: handler, log: log}, nil
}

// parts serve until told to end; then the leases are handed over, so that another memory need not wait for their end.
func (m *memoryService) parts(l net.Listener) []part {
	return []part{
		quietly(m.service.Run),
		func(ctx context.Context) error {
			err := serve.HTTP(ctx, l, m.handler, m.log)
			const bound = 5 * time.Second
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
			defer cancel()
			return errors.Join(err, m.service.Close(ctx))
		},
	}
}
