package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the build (-X main.version=…).
var version = "dev"

// testedEnvoy is the Envoy that the test suite runs (tools/requirements.txt).
const testedEnvoy = "1.40.0"

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(env *environment) error {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(env.stdout, "sallyport %s (revision %s, %s %s/%s), tested with Envoy %s\n",
		version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, testedEnvoy)
	return err
}
