package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sallyport/envoy"
	"sallyport/gateway/xds"
)

// upCommand runs everything on one machine.
type upCommand struct {
	upFlags
	Keystore string `help:"Where the keys are, if not in the data directory: postgres://USER@HOST/DATABASE, of this 'up' alone, since it ends the keys of pods that it does not know." placeholder:"ADDRESS"`
	memoryFlags
	keyNameFlags
	mintFlags
	kubeFlags
	doorFlags
}

// upFlags say what the machine's Envoy looks like; `envoy render` shows it.
type upFlags struct {
	Data    string `help:"Where everything is kept." default:".sallyport"`
	Listen  string `help:"Where Envoy listens; port 0 picks one." default:"127.0.0.1:8080"`
	Backend string `help:"Put this backend behind the door in the place of memory." placeholder:"URL"`
}

// gateway describes the Envoy in front of a data directory.
func (f upFlags) gateway(d *dataDir, headerPrefix string) xds.Gateway {
	unix := func(name string) xds.Upstream { return xds.Upstream{Endpoint: xds.Endpoint("unix:" + d.socket(name))} }
	g := xds.Gateway{
		Listen:       f.Listen,
		Admin:        xds.Endpoint("unix:" + d.socket("envoy-admin")),
		HeaderPrefix: headerPrefix,
		Authz:        xds.Authz{Upstream: unix("extauthz")},
		Exchange:     &xds.Exchange{Upstream: unix("exchange")},
		AccessLog:    d.file("envoy-access.log"),
	}
	if f.Backend != "" {
		g.Backend = xds.Backend{Upstream: xds.Upstream{Endpoint: xds.Endpoint(f.Backend)}}
		return g
	}
	g.Backend = xds.Backend{Upstream: unix("memory"), Name: "memory", Paths: []xds.Path{
		{Exact: "/healthz", Open: true},
		{Exact: "/mcp", Stream: true},
		{Prefix: "/v1/"},
	}}
	return g
}

// Run runs everything until the process is told to end, or a part fails for good.
func (c *upCommand) Run(env *environment) (err error) {
	began := time.Now()
	dir, err := openDataDir(c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	supervisor, err := envoy.New(envoy.Config{Gateway: c.gateway(dir, c.HeaderPrefix), Logger: env.log.With("part", "envoy")})
	if err != nil {
		return err
	}
	s, err := startServices(env, dir, c)
	if err != nil {
		return err
	}
	defer s.close(env)

	// The services outlive Envoy: what it still has in flight when it drains needs them.
	services, stopServices := context.WithCancel(context.WithoutCancel(env.ctx))
	defer stopServices()
	servicesEnded := make(chan error, 1)
	go func() { servicesEnded <- runParts(services, s.parts) }()
	front, stopFront := context.WithCancel(env.ctx)
	defer stopFront()
	frontEnded := make(chan error, 1)
	go func() { frontEnded <- supervisor.Run(front) }()

	select {
	case <-supervisor.Ready():
		err = c.welcome(env, dir, s, supervisor.Addr().String(), time.Since(began))
	case err = <-servicesEnded:
		servicesEnded <- err
	case err = <-frontEnded:
		frontEnded <- err
	}
	if err == nil {
		select {
		case <-env.ctx.Done():
			fmt.Fprintln(env.stdout, "ending: no new requests, those in flight are finished") //nolint:errcheck // the terminal may be gone
		case err = <-servicesEnded:
			servicesEnded <- err
		case err = <-frontEnded:
			frontEnded <- err
		}
	}
	stopFront()
	err = errors.Join(err, dir.removeEnvFile(), ended(<-frontEnded))
	stopServices()
	return errors.Join(err, ended(<-servicesEnded))
}

// ended drops the error of having been told to end.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// welcome says that everything is ready: in DIR/env for programs, on the terminal for people.
func (c *upCommand) welcome(env *environment, dir *dataDir, s *services, address string, took time.Duration) error {
	say(env.stdout, "envoy", "http://"+address)
	lines := []string{envLine("RECALL_URL", "http://"+address)}
	if s.tokenFile != "" {
		lines = append(lines, envLine("RECALL_TOKEN_FILE", s.tokenFile))
	}
	lines = append(lines, envLine("SALLYPORT_ADMIN_KEY_FILE", s.adminKeyFile))
	if err := dir.writeEnvFile(lines); err != nil {
		return err
	}
	python := "python3"
	if _, err := os.Stat(".tools/py/bin/python"); err == nil {
		python = ".tools/py/bin/python"
	}
	try := "Try it in another terminal:\n\n" + example(dir.envFile(), python, c.Backend != "")
	if s.tokenFile == "" {
		try = "Set RECALL_TOKEN_FILE to the projected token of one of your cluster's pods (audience " + c.Audience + ").\n"
	}
	_, err := fmt.Fprintf(env.stdout, "\nready in %s; Ctrl-C ends it\n\n  %s\n\n%s\n", took.Round(time.Millisecond), strings.Join(lines, "\n  "), try)
	return err
}

func example(envFile, python string, ownBackend bool) string {
	source := "  set -a; . '" + strings.ReplaceAll(envFile, "'", `'\''`) + "'; set +a\n"
	if ownBackend {
		return source +
			"  KEY=$(curl -s $RECALL_URL/v1/auth/kubernetes -d \"{\\\"token\\\":\\\"$(cat $RECALL_TOKEN_FILE)\\\"}\" | sed 's/.*\"key\":\"\\([^\"]*\\)\".*/\\1/')\n" +
			"  curl -i $RECALL_URL/ -H \"Authorization: Bearer $KEY\"   # your backend sees the agents:demo headers\n" +
			"  curl -i $RECALL_URL/                                   # 401\n"
	}
	return source +
		"  " + python + " - <<'END'\n" +
		"from polign_recall import Client\n" +
		"with Client.from_env() as memory:\n" +
		"    memory.remember(\"user\", \"prefers_editor\", \"vim\")\n" +
		"    print(memory.recall(\"user\", \"prefers_editor\"))\n" +
		"END\n"
}

// say prints one line a part.
func say(w io.Writer, part, where string) {
	fmt.Fprintf(w, "%-10s ready  %s\n", part, where) //nolint:errcheck // the terminal may be gone
}
