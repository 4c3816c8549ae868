package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/gateway/xds"
	"sallyport/internal/serve"
	"sallyport/internal/telemetry/collectortest"
)

// traced is a deployment whose services and Envoy send their spans to a collector.
func traced(t *testing.T, tracing xds.Tracing) (*deployment, *collectortest.Collector) {
	t.Helper()
	c := collectortest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.GRPC)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // milliseconds; the default is five seconds
	tracing.Endpoint = xds.Endpoint(c.GRPC)
	return deploy(t, func(g *xds.Gateway) { g.Tracing = &tracing }), c
}

// tree draws the trace that has a span of a name: a line each, indented below its parent.
func tree(spans []collectortest.Span, name string) []string {
	i := slices.IndexFunc(spans, func(s collectortest.Span) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	var out []string
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		var lines []string
		ids := map[string]string{}
		for _, s := range spans {
			if s.Trace == spans[i].Trace && s.Parent == parent {
				line := s.Service + ": " + s.Name
				lines = append(lines, line)
				ids[line] = s.ID
			}
		}
		slices.Sort(lines)
		for _, line := range lines {
			out = append(out, indent+line)
			draw(ids[line], indent+"  ")
		}
	}
	draw("", "")
	return out
}

func TestOneRequestIsOneTraceThroughEnvoyTheDoorsAndTheMemory(t *testing.T) {
	d, c := traced(t, xds.Tracing{Sample: 100})
	token := mustRun(t, "dev", "token", "--data", d.dir, "--pod", "p", "--claim", "c")
	key := mint(t, d.url, token)
	// A caller that puts its key where it does not belong, and wants to say what is traced.
	status, _, err := call(http.MethodPost, d.url+"/v1/remember?key="+key, key, map[string]string{"subject": "user", "predicate": "prefers_editor", "value": "vim-of-the-caller"},
		"User-Agent", "agent/"+key, "X-Request-Id", key, "Tracestate", "a="+key, "Baggage", "key="+key, "Cookie", key,
		"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	for name, want := range map[string][]string{
		"exchange /v1/auth/kubernetes": {
			"sallyport: exchange /v1/auth/kubernetes",
			"  sallyport: exchange /v1/auth/kubernetes upstream",
			"    sallyport-exchange: POST /v1/auth/kubernetes",
			"      sallyport-exchange: INSERT keys",
		},
		"backend /v1/*": {
			"sallyport: backend /v1/*",
			"  sallyport: async envoy.service.auth.v3.Authorization.Check egress",
			"    sallyport-extauthz: envoy.service.auth.v3.Authorization/Check",
			"      sallyport-extauthz: SELECT keys",
			"  sallyport: backend /v1/* upstream",
			"    sallyport-memory: POST /v1/remember",
		},
	} {
		eventually(t, "the trace of "+name, func() error {
			if got := tree(c.Spans(), name); !slices.Equal(got, want) {
				return fmt.Errorf("it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			return nil
		})
	}
	for _, secret := range []string{key, key[:40], token, token[:40], "prefers_editor", "vim-of-the-caller"} {
		if strings.Contains(c.Text(), secret) {
			t.Errorf("%s is in a span:\n%s", secret, c.Text())
		}
	}
	for _, s := range c.Spans() {
		if strings.HasPrefix(s.Trace, "4bf92f35") {
			t.Errorf("a caller has named the trace: %v", s)
		}
		if s.Name == "backend /v1/*" && (s.Attributes["sallyport.namespace"] != "agents:c" || s.Attributes["sallyport.reason"] != "allowed") {
			t.Errorf("the decision is not in %v", s.Attributes)
		}
	}
}

func TestADenialIsLoggedWithItsTrace(t *testing.T) {
	d, c := traced(t, xds.Tracing{Sample: 100})
	if status, _, err := call(http.MethodPost, d.url+"/v1/recall?q=1", "garbage", nil); err != nil || status != http.StatusUnauthorized {
		t.Fatalf("%d %v", status, err)
	}
	var trace string
	eventually(t, "the check's span", func() error {
		for _, s := range c.Spans() {
			if s.Service == "sallyport-extauthz" {
				trace = s.Trace
				return nil
			}
		}
		return errors.New("not yet")
	})
	if out := d.services["extauthz"].output.String(); !strings.Contains(out, "msg=decision decision=denied reason=malformed method=POST path=/v1/recall request_id=") ||
		!strings.Contains(out, "trace_id="+trace+" status=401 ") {
		t.Errorf("trace %s is not in\n%s", trace, out)
	}
}

func TestDecisionsAreJSONLinesOnStandardOutput(t *testing.T) {
	dir := shortDir(t)
	var stdout, rest buffer
	cmd := exec.Command(binary, "extauthz", "--listen=unix:"+dir+"/a.sock", "--http-listen=unix:"+dir+"/check.sock", "--admin-listen=", "--keystore=sqlite:"+dir+"/keys.db", "--decision-log=stdout")
	cmd.Stdout, cmd.Stderr = &stdout, &rest
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it runs
		_ = cmd.Wait()                          // its output is what the test is about
	}()
	door := serve.Client("unix:" + dir + "/check.sock")
	defer door.CloseIdleConnections()
	eventually(t, "it denies", func() error {
		r, err := door.Get("http://door/check/v1/recall?q=1")
		if err == nil {
			err = r.Body.Close()
		}
		return err
	})
	eventually(t, "the denial is logged", func() error {
		var line struct{ Msg, Decision, Reason, Path string }
		if err := json.Unmarshal([]byte(stdout.String()), &line); err != nil {
			return err
		}
		if line.Msg != "decision" || line.Decision != "denied" || line.Reason != "no_key" || line.Path != "/v1/recall" {
			return fmt.Errorf("%+v", line)
		}
		return nil
	})
	if strings.Contains(rest.String(), "denied") {
		t.Errorf("it is logged twice:\n%s", rest.String())
	}
}

func TestCallersDoNotSayWhatIsTraced(t *testing.T) {
	d, c := traced(t, xds.Tracing{Sample: 1e-4}) // one in a million
	key := mint(t, d.url, mustRun(t, "dev", "token", "--data", d.dir, "--pod", "p", "--claim", "c"))
	for range 20 {
		if status, _, err := call(http.MethodPost, d.url+"/v1/predicates", key, nil, "X-Client-Trace-Id", "1", "X-Envoy-Force-Trace", "true",
			"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"); err != nil || status != http.StatusOK {
			t.Fatalf("%d %v", status, err)
		}
	}
	for name, p := range d.services { // what they have, they send as they end
		p.end(t, syscall.SIGTERM)
		if strings.Contains(p.output.String(), "spans are lost") {
			t.Error(name + " lost spans")
		}
	}
	if spans := c.Spans(); len(spans) > 0 {
		t.Errorf("%v", spans)
	}
}

func TestACollectorThatIsAwayIsNoOutage(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	d := deploy(t, func(g *xds.Gateway) {
		g.Tracing = &xds.Tracing{Upstream: xds.Upstream{Endpoint: "127.0.0.1:1"}, Sample: 100}
	})
	remember(t, d.url, mint(t, d.url, mustRun(t, "dev", "token", "--data", d.dir, "--pod", "p", "--claim", "c")), "vim")
	for name, p := range d.services {
		p.end(t, syscall.SIGTERM)
		if p.ProcessState.ExitCode() != 0 {
			t.Errorf("%s ended with %d", name, p.ProcessState.ExitCode())
		}
	}
}
