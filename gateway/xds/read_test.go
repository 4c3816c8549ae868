package xds_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/xds"
)

const minimal = `
backend: {endpoint: "unix:/run/backend.sock"}
authz: {endpoint: "unix:/run/authz.sock"}
`

func TestReadFillsInTheDefaults(t *testing.T) {
	g, err := xds.Read([]byte(minimal + "exchange: {endpoint: \"exchange:8080\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if g.Listen != "127.0.0.1:8080" || g.Admin != "unix:/run/sallyport/envoy-admin.sock" || g.HeaderPrefix != "x-sallyport-" ||
		g.Authz.Timeout != 200*time.Millisecond || g.MaxStream != 15*time.Minute || g.AccessLog != "/dev/stdout" || g.TrustedHops != 0 {
		t.Errorf("defaults: %+v", g)
	}
	if len(g.Backend.Paths) != 1 || g.Backend.Paths[0] != (xds.Path{Prefix: "/", Stream: true}) {
		t.Errorf("a backend without paths is protected altogether: %+v", g.Backend.Paths)
	}
	if g.Exchange.TokenRate.Requests >= g.Exchange.AdminRate.Requests {
		t.Errorf("tokens are not limited more tightly than administration: %+v", g.Exchange)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := xds.ReadFile(path); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("listen: nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := xds.ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error = %v, want the file's name in it", err)
	}
	if _, err := xds.ReadFile(path + ".missing"); err == nil {
		t.Error("a missing file was read")
	}
}

// Each mistake is named by its field, with what to do about it.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       []string
	}{
		{"an unknown field", minimal + "lisen: 127.0.0.1:80", []string{"line 4", `"lisen"`, "listen"}},
		{"an unknown field inside", "backend: {endpont: x}", []string{`"endpont"`, "endpoint, tls, name, paths"}},
		{"an unknown field of the exchange", minimal + "exchange: {rate: x}", []string{`"rate"`, "tokenRate"}},
		{"a value of the wrong type", minimal + "trustedHops: many", []string{"line 4", "many"}},
		{"no duration", "authz: {timeout: soon}", []string{"line 1", "soon"}},
		{"two documents", minimal + "---\n" + minimal, []string{"more than one"}},
		{"an empty file", "", []string{"backend: endpoint is missing", "authz: endpoint is missing"}},
		{"listen without a port", minimal + "listen: 127.0.0.1", []string{"listen", "HOST:PORT"}},
		{"listen on a name", minimal + "listen: localhost:80", []string{"listen", "127.0.0.1"}},
		{"listen on no host", minimal + `listen: ":8080"`, []string{"listen", "0.0.0.0:8080"}},
		{"listen on no number", minimal + "listen: 127.0.0.1:http", []string{"listen", "0 to 65535"}},
		{"metrics on a name", minimal + "metrics: localhost:80", []string{"metrics"}},
		{"an admin interface that others reach", minimal + "admin: 0.0.0.0:9901", []string{"admin", "stop Envoy"}},
		{"an admin socket that is too long", minimal + "admin: unix:/" + strings.Repeat("x", 107), []string{"admin", "107", "shorter directory"}},
		{"a relative socket", minimal + "admin: unix:run/x.sock", []string{"admin", "relative"}},
		{"a prefix of others' headers", minimal + "headerPrefix: x-envoy-", []string{"headerPrefix", "x-envoy-"}},
		{"a prefix over the claimed one", minimal + "headerPrefix: sallyport-", []string{"headerPrefix", "sallyport-claimed-"}},
		{"a prefix without an end", minimal + "headerPrefix: x-acme", []string{"headerPrefix", "hyphen"}},
		{"a relative access log", minimal + "accessLog: access.log", []string{"accessLog", "/dev/stdout", `"none"`}},
		{"streams without an end", minimal + "maxStream: 1000h", []string{"maxStream"}},
		{"no memory", minimal + "limits: {heapMiB: 1}", []string{"limits.heapMiB", "64"}},
		{"a backend over HTTPS", "backend: {endpoint: \"https://b:1\"}", []string{"backend", "tls"}},
		{"a backend with a path", "backend: {endpoint: \"http://b:1/api\"}", []string{"backend", "path"}},
		{"a backend with a password", "backend: {endpoint: \"http://u:secret@b:1\"}", []string{"backend", "user"}},
		{"a backend on port 0", "backend: {endpoint: \"b:0\"}", []string{"backend", "port 0"}},
		{"a backend of the doors' name", "backend: {endpoint: \"b:1\", name: sallyport_authz}", []string{"name", "taken"}},
		{"a path without a form", "backend: {endpoint: \"b:1\", paths: [{open: true}]}", []string{"exact or prefix"}},
		{"a path of two forms", "backend: {endpoint: \"b:1\", paths: [{exact: /a, prefix: /b/}]}", []string{"exact or prefix"}},
		{"a path without a slash", "backend: {endpoint: \"b:1\", paths: [{exact: a}]}", []string{"slash"}},
		{"a prefix without an end", "backend: {endpoint: \"b:1\", paths: [{prefix: /v1}]}", []string{`"/v1x"`, `"/v1/"`}},
		{"everything open", "backend: {endpoint: \"b:1\", paths: [{prefix: /, open: true}]}", []string{"nothing would need a key"}},
		{"a path that is never seen", "backend: {endpoint: \"b:1\", paths: [{exact: /a%2fb}]}", []string{"normalized"}},
		{"a path twice", "backend: {endpoint: \"b:1\", paths: [{exact: /a}, {exact: /a, open: true}]}", []string{"/a", "twice"}},
		{"a door on another host in the clear", "authz: {endpoint: \"authz:1\"}", []string{"authz", "tls", "ca, san, cert and key"}},
		{"a door on another host without a certificate of ours", "authz: {endpoint: \"authz:1\", tls: {ca: /ca, san: authz}}", []string{"authz", "cert and key"}},
		{"a check without an end", "authz: {endpoint: \"unix:/a\", timeout: 1m}", []string{"authz", "timeout", "5s"}},
		{"TLS on a socket", "authz: {endpoint: \"unix:/a\", tls: {ca: /ca, san: a}}", []string{"authz", "unix socket"}},
		{"TLS without an authority", "backend: {endpoint: \"b:1\", tls: {san: b}}", []string{"tls.ca"}},
		{"TLS without a name", "backend: {endpoint: \"b:1\", tls: {ca: /ca}}", []string{"tls.san"}},
		{"half a certificate", "backend: {endpoint: \"b:1\", tls: {ca: /ca, san: b, cert: /c}}", []string{"tls.cert and tls.key"}},
		{"a sample without a sign", minimal + "tracing: {endpoint: \"c:4317\", sample: 0.01}", []string{"0.01", "such as 1%"}},
		{"a sample of more than all", minimal + "tracing: {endpoint: \"c:4317\", sample: 101%}", []string{"tracing", "sample", "100%"}},
		{"a sample below nothing", minimal + "tracing: {endpoint: \"c:4317\", sample: -1%}", []string{"tracing", "sample"}},
		{"tracing to nowhere", minimal + "tracing: {sample: 1%}", []string{"tracing", "endpoint"}},
		{"an unknown field of tracing", minimal + "tracing: {collector: \"c:1\"}", []string{`"collector"`, "sample"}},
		{"a rate of nothing", minimal + "exchange: {endpoint: \"e:1\", tokenRate: {every: 1s}}", []string{"tokenRate.requests"}},
		{"a rate too fast", minimal + "exchange: {endpoint: \"e:1\", adminRate: {requests: 1, every: 1ms}}", []string{"adminRate.every", "50ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := xds.Read([]byte(tt.yaml))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, words := range tt.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("error = %v, want %q in it", err, words)
				}
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "xds.") {
				t.Errorf("error shows a secret, or a Go type: %v", err)
			}
		})
	}
}

func TestWhatIsAllowedButShouldBeKnown(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       []string // one for each warning
	}{
		{"all on this host", minimal + "exchange: {endpoint: \"127.0.0.1:1\"}", nil},
		{"a backend elsewhere", "backend: {endpoint: \"b:1\"}\nauthz: {endpoint: \"unix:/a\"}", []string{"backend"}},
		{"a backend elsewhere, with TLS", "backend: {endpoint: \"b:1\", tls: {ca: /ca, san: b}}\nauthz: {endpoint: \"unix:/a\"}", nil},
		{"an exchange elsewhere", minimal + "exchange: {endpoint: \"e:1\"}", []string{"exchange"}},
		{"a collector elsewhere", minimal + "tracing: {endpoint: \"c:4317\"}", []string{"tracing"}},
		{"callers from elsewhere", minimal + "listen: 0.0.0.0:80", []string{"listen"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := xds.Read([]byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			got := g.Warnings()
			if len(got) != len(tt.want) {
				t.Fatalf("warnings = %q, want %d", got, len(tt.want))
			}
			for i, field := range tt.want {
				if !strings.HasPrefix(got[i], field+":") {
					t.Errorf("warning = %q, want it to begin with %q", got[i], field)
				}
			}
		})
	}
}

func TestRenderAlwaysGivesTheSameBytes(t *testing.T) {
	g, err := xds.Read([]byte(minimal + "metrics: 127.0.0.1:9090\nexchange: {endpoint: \"e:1\"}"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := xds.Render(g)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := xds.Render(g)
		if err != nil || !bytes.Equal(again, first) {
			t.Fatalf("differs: %v", err)
		}
	}
}
