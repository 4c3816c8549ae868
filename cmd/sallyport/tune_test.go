package main_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDoorIsTunedWhileItRuns(t *testing.T) {
	dir := shortDir(t)
	file := filepath.Join(dir, "sallyport.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("up:\n  revocation-cache-ttl: 20s\n")
	p, env := up(t, dir, "--config", file)
	says := func(words ...string) error {
		stats := strings.Join(strings.Fields(mustRun(t, "extauthz", "stats", "--data", dir)), " ")
		for _, w := range words {
			if !strings.Contains(stats, w) {
				return errors.New(w + " is not in\n" + stats)
			}
		}
		return nil
	}
	ttl := func(d string) string { return "revocation cache TTL " + d }

	key := mint(t, env["RECALL_URL"], mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c"))
	for range 5 {
		remember(t, env["RECALL_URL"], key, "vim")
	}
	if status, _, err := call(http.MethodPost, env["RECALL_URL"]+"/v1/recall", "garbage", nil); err != nil || status != http.StatusUnauthorized {
		t.Fatalf("%d %v", status, err)
	}
	if err := says(ttl("20s"), "decisions, allowed 5", "decisions, malformed 1", "keys in it 1 of 16384", "a TTL of 1s"); err != nil {
		t.Error(err)
	}

	t.Run("by a command", func(t *testing.T) {
		mustRun(t, "extauthz", "set", "--data", dir, "ttl=7s", "size=100")
		if err := says(ttl("7s"), "of 100"); err != nil {
			t.Error(err)
		}
		for _, wrong := range []string{"ttl=soon", "ttl", "size=-1", "colour=red"} {
			if _, stderr, status := run(t, "extauthz", "set", "--data", dir, wrong); status == 0 || stderr == "" {
				t.Errorf("%s was taken", wrong)
			}
		}
	})
	t.Run("by its settings file", func(t *testing.T) {
		write("up:\n  revocation-cache-ttl: 3s\n")
		eventually(t, "the file counts", func() error { return says(ttl("3s")) })
		write("up:\n  revocation-cashe-ttl: 9s\n")
		eventually(t, "a file that is wrong is told", func() error {
			if !strings.Contains(p.output.String(), "revocation-cashe-ttl") {
				return errors.New("not yet")
			}
			return says(ttl("3s"))
		})
	})
	if out := p.output.String(); !strings.Contains(out, `by="the admin socket"`) || !strings.Contains(out, `by="the settings file"`) {
		t.Errorf("the log does not say who changed what:\n%s", out)
	}
}

func TestMetricsAreScraped(t *testing.T) {
	d := deploy(t)
	token := mustRun(t, "dev", "token", "--data", d.dir, "--pod", "p", "--claim", "c")
	key := mint(t, d.url, token)
	remember(t, d.url, key, "vim")
	text := scrape(t, filepath.Join(d.dir, "extauthz-metrics.sock")) + scrape(t, filepath.Join(d.dir, "exchange-metrics.sock"))
	for _, line := range []string{
		`sallyport_extauthz_decisions_total{reason="allowed"} 1`, `sallyport_extauthz_decisions_total{reason="revoked"} 0`,
		"sallyport_extauthz_revocation_cache_ttl_seconds 30", "sallyport_extauthz_revocation_lag_seconds_count 0", `sallyport_extauthz_shadow_store_reads_total{ttl="1m0s"} 1`,
		`sallyport_exchange_answers_total{reason="",route="/v1/auth/kubernetes",status="201"} 1`, "process_cpu_seconds_total", "sallyport_build_info{",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
	if strings.Contains(text, key) || strings.Contains(text, token) {
		t.Error("a metric holds a secret")
	}
}
