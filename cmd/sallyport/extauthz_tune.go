package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sallyport/extauthz/tuning"
	"sallyport/internal/serve"
)

// tuneFlags say which door.
type tuneFlags struct {
	Admin string `help:"The running door's --admin-listen." default:"unix:/run/sallyport/extauthz-admin.sock"`
	Data  string `help:"The directory of a running 'up', whose door it then is." placeholder:"DIR"`
}

// call makes one call to the door's admin address.
func (f tuneFlags) call(ctx context.Context, method, path string, ask any) ([]byte, error) {
	const bound, maxAnswer = 5 * time.Second, 1 << 20
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	address := f.Admin
	if f.Data != "" {
		address = "unix:" + (&dataDir{path: f.Data}).socket("extauthz-admin")
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://door"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	client := serve.Client(address)
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("reach the door at %s (--admin, --data): %w", address, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the door's answer: %w", err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return nil, refusal(answer.Status, text)
	}
	return text, nil
}

type extauthzSetCommand struct {
	tuneFlags
	Settings []string `arg:"" help:"What to change: ttl=10s, size=20000, verified-cache-size=20000."`
}

// Run changes settings of a running door. They last until it ends, or its settings file changes.
func (c *extauthzSetCommand) Run(env *environment) error {
	ask := map[string]string{}
	for _, s := range c.Settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New(s + ": write NAME=VALUE, such as ttl=10s")
		}
		ask[name] = value
	}
	if _, err := c.call(env.ctx, http.MethodPost, "/settings", ask); err != nil {
		return err
	}
	_, err := fmt.Fprintln(env.stdout, "changed "+strings.Join(c.Settings, ", "))
	return err
}

type extauthzStatsCommand struct {
	tuneFlags
	JSON bool `help:"Print the door's answer as it is." name:"json"`
}

// Run prints how a door does.
func (c *extauthzStatsCommand) Run(env *environment) error {
	text, err := c.call(env.ctx, http.MethodGet, "/stats", nil)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := env.stdout.Write(text)
		return err
	}
	var r tuning.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read the door's answer: %w", err)
	}
	return printReport(env.stdout, r)
}

func printReport(to io.Writer, r tuning.Report) error {
	const gap, percent = 2, 100
	w := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	line := func(name, format string, values ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", values...) } //nolint:errcheck // Flush tells
	c := r.Revocation
	line("running since", "%s (%s)", r.Since.Format(time.RFC3339), seconds(r.Seconds))
	for _, reason := range slices.Sorted(maps.Keys(r.Decisions)) {
		line("decisions, "+string(reason), "%d", r.Decisions[reason])
	}
	line("revocation cache TTL", "%s", seconds(c.TTL))
	line("keys in it", "%d of %d", c.Entries, c.Size)
	line("hit rate", "%.2f %%", percent*c.HitRate)
	line("store reads", "%d (%.2f a second), %d failed", c.Reads, c.ReadsASecond, c.Failures)
	line("oldest \"not revoked\" trusted", "%s", seconds(c.OldestTrusted))
	line("revocations refused here", "%d, after %s on average, %s at most", c.Lag.Count, seconds(c.Lag.Mean), seconds(c.Lag.Longest))
	line("signatures remembered", "hit rate %.2f %%, room for %d", percent*r.Verified.HitRate, r.Verified.Size)
	for _, s := range c.OtherTTLs {
		line("a TTL of "+seconds(s.TTL).String(), "would have read %d times (%.2f a second)", s.Reads, s.ReadsASecond)
	}
	return w.Flush()
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
