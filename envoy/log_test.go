package envoy_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sallyport/envoy"
)

func TestEnvoysLogIsForwardedWithItsLevels(t *testing.T) {
	var out bytes.Buffer
	f := envoy.NewLogForwarder(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	for _, part := range []string{
		"info main all clusters initialized\nwarn", "ing config something is ", "odd\n", // lines come in pieces
		"error config gRPC config rejected\ncritical main it is over\n",
		"debug main not shown\n",
		"*** stack smashing detected ***\n\n",
		"warning main caught ENVOY_SIGTERM\n",
		"error main " + strings.Repeat("x", 20<<10) + "\n",
		"without an end",
	} {
		if n, err := fmt.Fprint(f, part); err != nil || n != len(part) {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	f.Flush()
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{
		`level=INFO msg="all clusters initialized" component=main`,
		`level=WARN msg="something is odd" component=config`,
		`level=ERROR msg="gRPC config rejected" component=config`,
		`level=ERROR msg="it is over" component=main`,
		`level=WARN msg="*** stack smashing detected ***" component=""`,
		`level=ERROR msg=xxx`, // cut
		`level=WARN msg="without an end" component=""`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), out.String())
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) || len(got[i]) > 10<<10 {
			t.Errorf("line %d = %.200s, want %s", i, got[i], want[i])
		}
	}
}

func TestValidateSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ name, configuration, want string }{
		{"an unknown field", "node: {id: x, cluster: y}\nnonsense: 1\n", "nonsense"},
		{"a listener without an address", "static_resources: {listeners: [{name: x}]}", "address"},
		{"no YAML", "a: [", "read envoy's configuration"},
		{"nothing", "", "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := envoy.Validate(t.Context(), []byte(tt.configuration))
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
}
