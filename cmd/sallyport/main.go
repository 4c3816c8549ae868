// Command sallyport is the one binary of the project: each subcommand has a file here, which wires packages together and
// holds no rules.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"sallyport/internal/settings"
)

// app is the command line.
type app struct {
	Config    kong.ConfigFlag `help:"YAML file with a section a command and the flags' names in it." placeholder:"FILE" env:"SALLYPORT_CONFIG"`
	LogFormat string          `help:"How to log: text or json." enum:"text,json" default:"text"`
	LogLevel  slog.Level      `help:"The least that is logged: debug, info, warn or error." default:"info"`

	Up       upCommand       `cmd:"" help:"Run everything on this machine: both doors, the memory, and Envoy in front."`
	Dev      devCommand      `cmd:"" help:"Change the development cluster that 'up' trusts, and get its tokens."`
	Exchange exchangeCommand `cmd:"" help:"Serve the outer door: tokens in, keys out."`
	Extauthz extauthzCommand `cmd:"" help:"Serve the inner door: Envoy's external authorization."`
	Memory   memoryCommand   `cmd:"" help:"Serve the memory backend."`
	Keys     keysCommand     `cmd:"" help:"List, revoke and mint keys."`
	Envoy    envoyCommand    `cmd:"" help:"Show Envoy's configuration."`
	Health   healthCommand   `cmd:"" help:"Ask a service whether it can do its work."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// environment is what the commands get of the outside.
type environment struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the process
	stdout io.Writer
	stderr io.Writer
	log    *slog.Logger
	kong   *kong.Context

	args         []string
	settingsFile string // empty without one
}

// announce logs the settings that a service starts with.
func (e *environment) announce() {
	e.log.LogAttrs(e.ctx, slog.LevelInfo, "starting "+e.kong.Command(), settings.Attrs(e.kong)...)
}

// close closes a store when its user ends. Every write was durable when it returned, so a failure is said and no more.
func (e *environment) close(closer func() error) {
	if err := closer(); err != nil {
		e.log.Warn("a store is not closed", "error", err)
	}
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var a app
	k, err := parse(&a, args, stdout, stderr)
	var asked *exitError
	switch {
	case errors.As(err, &asked): // --help
		return asked.status
	case err != nil:
		fmt.Fprintf(stderr, "sallyport: %v\n", err) //nolint:errcheck // nowhere else to say it
		return 2
	}
	env := &environment{
		ctx: ctx, stdout: stdout, stderr: stderr, log: logger(stderr, a.LogFormat, a.LogLevel), kong: k, args: args, settingsFile: string(a.Config),
	}
	if err := k.Run(env); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "sallyport: %v\n", err) //nolint:errcheck // nowhere else to say it
		return 1
	}
	return 0
}

// exitError says that the command line asked for no more than was printed.
type exitError struct{ status int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// parse reads the command line, the variables and the settings file into a.
func parse(a *app, args []string, stdout, stderr io.Writer) (*kong.Context, error) {
	var asked *exitError
	parser, err := kong.New(a,
		kong.Name("sallyport"),
		kong.Description("Memory that outlives an agent's sandbox, with no secret in the box."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { asked = &exitError{status} }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.DefaultEnvars(settings.EnvPrefix),
		kong.Configuration(settings.Read),
	)
	if err != nil {
		return nil, err
	}
	k, err := parser.Parse(args)
	if asked != nil {
		return nil, asked
	}
	return k, err
}

func logger(w io.Writer, format string, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
