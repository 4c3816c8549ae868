package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// container is what the test reads of a pod's container.
type container struct {
	Name           string
	Image          string
	Args           []string
	ReadinessProbe struct {
		Exec struct{ Command []string }
	} `yaml:"readinessProbe"`
}

type workload struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct{ Containers []container }
		}
	}
}

func TestManifestsUseFlagsThatThereAre(t *testing.T) {
	f, err := os.Open("../../deploy/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	checked := 0
	for d := yaml.NewDecoder(f); ; {
		var w workload
		if err := d.Decode(&w); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range w.Spec.Template.Spec.Containers {
			if !strings.HasPrefix(c.Image, "sallyport") {
				continue
			}
			checked++
			parses(t, c.Args)
			if probe := c.ReadinessProbe.Exec.Command; len(probe) == 0 || probe[0] != "/sallyport" {
				t.Errorf("%s has no probe", c.Name)
			} else {
				parses(t, probe[1:])
			}
		}
	}
	if checked != 3 { // exchange, extauthz, memory
		t.Errorf("%d containers run sallyport", checked)
	}
}

func parses(t *testing.T, args []string) {
	t.Helper()
	var a app
	k, err := kong.New(&a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse(args); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}
