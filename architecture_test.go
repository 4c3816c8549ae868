// Package sallyport_test holds what is true of the repository as a whole.
package sallyport_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// mayImport is the table of the design: what each folder may import of this module, besides itself and what is below it.
// A folder that is not in it is a mistake: say first what it is for.
var mayImport = map[string][]string{
	"gateway":              {},
	"gateway/xds":          {"gateway"},
	"envoy":                {"gateway/xds"},
	"envoy/envoytest":      {"envoy", "gateway/xds"},
	"extauthz":             {"gateway", "internal/key", "internal/keystore", "internal/lasting"},
	"extauthz/checkserver": {"extauthz", "gateway", "internal/unary"},
	"extauthz/httpcheck":   {"extauthz", "gateway"},
	"extauthz/shut":        {}, // tests alone, which import what they need
	"extauthz/tuning":      {"extauthz", "gateway"},
	"exchange":             {"exchange/sandbox", "gateway", "internal/key", "internal/keystore", "internal/periodic"},
	"exchange/sandbox":     {},
	"exchange/oidc":        {"exchange", "exchange/sandbox", "internal/key"},
	"exchange/devcluster":  {"exchange/sandbox", "internal/filelock", "internal/keystore", "internal/periodic", "internal/sqlite"},
	"exchange/httpapi":     {"exchange", "gateway", "internal/keystore"},
	"exchange/kubernetes":  {"exchange", "exchange/oidc", "exchange/sandbox", "gateway", "internal/keystore"}, // and watch below it
	"memory":               {"gateway", "internal/postgres", "internal/sqlite"},                               // and all below it
	"internal/filelock":    {},
	"internal/heap":        {"internal/periodic"},
	"internal/key":         {"internal/periodic"},
	"internal/periodic":    {},
	"internal/keystore":    {"internal/key", "internal/lasting", "internal/postgres", "internal/sqlite"},
	"internal/lasting":     {},
	"internal/pgtest":      {}, // for tests
	"internal/postgres":    {},
	"internal/serve":       {},
	"internal/settings":    {},
	"internal/sqlite":      {"internal/filelock"},
	"internal/telemetry":   {"internal/keystore"},
	"internal/unary":       {},
	"cmd/sallyport":        {"..."},
	"bench":                {"envoy", "envoy/envoytest", "gateway", "gateway/xds", "internal/key", "internal/keystore"},
}

// mayNotReach says which modules must not be reached from a folder, by whatever way.
var mayNotReach = map[string][]string{
	// The standard library alone: a backend takes nothing else on with the middleware.
	"gateway": {"."},
	// The backend never sees a token or a key.
	"memory": {"golang-jwt", "jwkset", "keyfunc", "sallyport/extauthz", "sallyport/exchange", "sallyport/internal/key", "google.golang.org/grpc", "k8s.io/"},
	// The decisions know no gRPC, no Envoy and no Kubernetes.
	"extauthz":         {"google.golang.org/grpc", "go-control-plane", "k8s.io/", "go.opentelemetry.io"},
	"exchange":         {"google.golang.org/grpc", "go-control-plane", "k8s.io/", "go.opentelemetry.io"},
	"exchange/sandbox": {"net/http", "google.golang.org/grpc", "k8s.io/", "golang-jwt"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

const module = "sallyport"

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// folder returns the folder whose row in the table is for a package: its own, or the nearest above it.
func folder(importPath string) (string, bool) {
	for f := strings.TrimPrefix(importPath, module+"/"); f != "."; f = path.Dir(f) {
		if _, ok := mayImport[f]; ok {
			return f, true
		}
	}
	return "", false
}

func TestFoldersImportOnlyWhatTheTableSays(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath == module {
			continue
		}
		from, ok := folder(p.ImportPath)
		if !ok {
			t.Errorf("%s is in no row of the table", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			to, own := strings.CutPrefix(imported, module+"/")
			if !own || strings.HasPrefix(to+"/", from+"/") || slices.Contains(mayImport[from], "...") {
				continue
			}
			if !slices.Contains(mayImport[from], to) {
				t.Errorf("%s imports %s: the table allows %v", p.ImportPath, to, mayImport[from])
			}
		}
	}
}

func TestFoldersReachNothingThatTheyMustNotKnow(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for from, forbidden := range mayNotReach {
			// memory with all below it; the others are the folder itself, since adapters live below the decision.
			if name != from && (from != "memory" || !strings.HasPrefix(name, "memory/")) {
				continue
			}
			for _, dep := range p.Deps {
				for _, bad := range forbidden {
					domain, _, _ := strings.Cut(dep, "/")
					thirdParty := bad == "." && strings.Contains(domain, ".") && !strings.HasPrefix(dep, "vendor/")
					if thirdParty || (bad != "." && strings.Contains(dep, bad)) {
						t.Errorf("%s reaches %s", p.ImportPath, dep)
					}
				}
			}
		}
	}
}
