package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	doorBinary  string // the sallyport binary
	benchBinary string // the benchmark, which starts itself as other servers
)

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sallyport-bench-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in /tmp
	doorBinary, benchBinary = filepath.Join(dir, "sallyport"), filepath.Join(dir, "bench")
	for binary, source := range map[string]string{doorBinary: "../cmd/sallyport", benchBinary: "."} {
		build := exec.Command("go", "build", "-trimpath", "-o", binary, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", source, err, out)
			return 1
		}
	}
	return m.Run()
}

// bench runs the benchmark, quickly, and returns what it printed.
func bench(t *testing.T, what string, flags ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), benchBinary, append([]string{what, "-quick", "-door", doorBinary}, flags...)...)
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, progress.String(), out.String())
	}
	return out.String()
}

// The figures themselves are not looked at: they say nothing on a machine that runs tests.
func TestEveryFigureIsPrinted(t *testing.T) {
	for what, wants := range map[string][]string{
		"straight": {
			"| " + nameAllow + " |", "| " + nameAgain + " |", "| warm: ", "| cold: ", "| warm at ", "keys seen",
			"| warm, of always-allow's CPU | ≤ 0.40 |", "| cold, of always-allow's CPU | ≤ 2.00 |", "| MiB at ", "Load average",
		},
		"envoy": {
			"| pass-through", "| Envoy's own jwt_authn", "| " + nameAllow + " |", "| warm: ", "| cold: ", "| warm at ", "| " + nameOPA + " |",
			"of always-allow's | ≤ 0.50 |", "of always-allow's | ≥ 1.15 |", "of pass-through | ≥ 0.46 |", "of always-allow's | ≤ 2.00 |",
			"p50 added at 500/s, less", "p50 added at 2000/s, less", "Load average",
		},
	} {
		t.Run(what, func(t *testing.T) {
			out := bench(t, what)
			for _, want := range wants {
				if !strings.Contains(out, want) {
					t.Errorf("no %q", want)
				}
			}
			if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
				t.Error("a figure is missing")
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}
