package kubetest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// auditPolicy logs who called what, once each call is answered, or begun for a watch.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Call is one call that the API server answered.
type Call struct {
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	Stage     string `json:"stage"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (c *Cluster) auditLog() string { return filepath.Join(c.dir, "audit.log") }

// Calls returns the calls that a client with this user agent has made, the oldest first. A watch counts once, when it begins.
func (c *Cluster) Calls(t testing.TB, userAgent string) []Call {
	t.Helper()
	f, err := os.Open(c.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	var out []Call
	const longest = 1 << 20
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var call Call
		if json.Unmarshal(lines.Bytes(), &call) != nil {
			continue // the last line may not be whole yet
		}
		begun := call.Stage == "ResponseStarted" || call.Verb != "watch"
		if call.UserAgent == userAgent && begun {
			out = append(out, call)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
