package envoy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/envoy"
)

// fake puts an executable file there.
func fake(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv("ENVOY", "")
	t.Setenv("PATH", filepath.Join(root, "bin"))

	t.Run("nothing anywhere: what to do", func(t *testing.T) {
		_, err := envoy.Find()
		if !errors.Is(err, envoy.ErrNotFound) || !strings.Contains(err.Error(), "make tools") || !strings.Contains(err.Error(), "ENVOY") {
			t.Errorf("error = %v", err)
		}
	})
	want := func(t *testing.T, path string) {
		t.Helper()
		if got, err := envoy.Find(); err != nil || got != path {
			t.Errorf("found %q, %v; want %q", got, err, path)
		}
	}
	t.Run("the tools of a directory above", func(t *testing.T) {
		want(t, fake(t, filepath.Join(root, ".tools/py/lib/python3.99/site-packages/envoy/_bin/envoy")))
	})
	t.Run("the PATH goes before the tools", func(t *testing.T) {
		want(t, fake(t, filepath.Join(root, "bin/envoy")))
	})
	t.Run("ENVOY goes before all", func(t *testing.T) {
		path := fake(t, filepath.Join(root, "mine"))
		t.Setenv("ENVOY", path)
		want(t, path)
	})
	t.Run("an ENVOY that is not there is an error, not passed over", func(t *testing.T) {
		t.Setenv("ENVOY", filepath.Join(root, "missing"))
		if _, err := envoy.Find(); err == nil || !strings.Contains(err.Error(), "ENVOY is set") {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("nor is one that cannot be run", func(t *testing.T) {
		t.Setenv("ENVOY", below)
		if _, err := envoy.Find(); err == nil {
			t.Error("a directory was accepted")
		}
	})
}
