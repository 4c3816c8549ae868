package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"sallyport/internal/serve"
)

// healthCommand asks a service whether it can do its work: a kubelet cannot reach a unix socket, and the image has no curl.
type healthCommand struct {
	Service string        `arg:"" enum:"exchange,extauthz,memory" help:"Which service: exchange, extauthz or memory."`
	Address string        `arg:"" help:"Where it listens: unix:PATH or HOST:PORT."`
	Timeout time.Duration `help:"How long to wait for the answer." default:"2s"`
}

// Run prints ok, or fails.
func (c *healthCommand) Run(env *environment) error {
	ctx, cancel := context.WithTimeout(env.ctx, c.Timeout)
	defer cancel()
	ask := c.askHTTP
	if c.Service == "extauthz" {
		ask = c.askGRPC
	}
	if err := ask(ctx); err != nil {
		return fmt.Errorf("%s is not healthy: %w", c.Service, err)
	}
	_, err := fmt.Fprintln(env.stdout, "ok")
	return err
}

func (c *healthCommand) askHTTP(ctx context.Context) error {
	client := serve.Client(c.Address)
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	const enough = 1 << 10
	text, err := io.ReadAll(io.LimitReader(answer.Body, enough))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

func (c *healthCommand) askGRPC(ctx context.Context) (err error) {
	conn, err := grpc.NewClient(c.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	state, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if state.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("it says %s", state.GetStatus())
	}
	return nil
}
