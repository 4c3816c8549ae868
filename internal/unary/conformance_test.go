package unary_test

import (
	"encoding/xml"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"sallyport/internal/unary"
)

// report is h2spec's, as JUnit's XML.
type report struct {
	Suites []struct {
		ID    string `xml:"id,attr"`
		Name  string `xml:"name,attr"`
		Cases []struct {
			Name    string  `xml:"classname,attr"`
			Failure *string `xml:"failure"`
			Error   *string `xml:"error"`
			Skipped *string `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// fewestCases is far more than a part of h2spec, whose version is pinned: it has 146.
const fewestCases = 140

func TestItIsHTTP2AsH2specHasIt(t *testing.T) {
	t.Parallel()
	binary := filepath.Join("..", "..", ".tools", "bin", "h2spec")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v: run `make tools`", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, unary.New(handlers(nil), options()), l)
	file := filepath.Join(t.TempDir(), "report.xml")
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	out, err := exec.CommandContext(t.Context(), binary, "-S", "-p", port, "-j", file).CombinedOutput()
	if err != nil {
		t.Errorf("h2spec: %v\n%s", err, out)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := xml.Unmarshal(written, &r); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, suite := range r.Suites {
		for _, c := range suite.Cases {
			cases++
			for _, f := range []*string{c.Failure, c.Error, c.Skipped} {
				if f != nil {
					t.Errorf("%s %s: %s: %s", suite.ID, suite.Name, c.Name, *f)
				}
			}
		}
	}
	if cases < fewestCases {
		t.Errorf("h2spec ran %d cases\n%s", cases, out)
	}
}
