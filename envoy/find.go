package envoy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// toolPatterns are where `make tools` lays the binary, under a directory of the project. The binary itself goes before the
// wheel's start script, which needs its Python.
var toolPatterns = []string{
	".tools/py/lib/python3*/site-packages/envoy/_bin/envoy",
	".tools/py/bin/envoy",
	".tools/bin/envoy",
}

// ErrNotFound says that there is no Envoy binary to run.
var ErrNotFound = errors.New("no Envoy binary found: run `make tools`, put envoy on the PATH, or set ENVOY to its path")

// Find returns the path of the Envoy binary: $ENVOY if it is set, else what the PATH holds, else what `make tools` laid in
// .tools of the working directory, of the executable's directory, or of one above them.
func Find() (string, error) {
	if path := os.Getenv("ENVOY"); path != "" {
		if err := checkExecutable(path); err != nil {
			return "", fmt.Errorf("ENVOY is set, but %w: correct it, or unset it and run `make tools`", err)
		}
		return path, nil
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return path, nil
	}
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	for _, start := range starts {
		if path, ok := findAbove(start); ok {
			return path, nil
		}
	}
	return "", ErrNotFound
}

func findAbove(dir string) (string, bool) {
	for {
		for _, pattern := range toolPatterns {
			matches, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				continue // a directory name that looks like a broken pattern
			}
			for _, path := range matches {
				if checkExecutable(path) == nil {
					return path, true
				}
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func checkExecutable(path string) error {
	info, err := os.Stat(path) //nolint:gosec // the operator names the path
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}
