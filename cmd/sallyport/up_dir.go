package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/filelock"
	"sallyport/internal/serve"
)

// dataDir is where `up` keeps everything. Only its owner can enter it, which is also what keeps others on the host from
// the services' sockets.
type dataDir struct {
	path string
	lock *filelock.Lock
}

// openDataDir makes the directory if there is none, and holds it against a second `up`.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	d := &dataDir{path: path}
	if err := os.MkdirAll(d.runDir(), 0o700); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a directory has to be entered
		return nil, fmt.Errorf("--data: %w", err)
	}
	for _, socket := range []string{d.socket("extauthz"), d.socket("exchange"), d.socket("memory"), d.socket("envoy-admin"), d.socket("extauthz-admin")} {
		if err := serve.CheckSocketPath(socket); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
	}
	d.lock, err = filelock.Try(d.file("up.lock"))
	var held *filelock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("another 'sallyport up' (process %d) holds %s: end it first, or give another --data", held.PID, path)
	}
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return d, d.removeEnvFile() // one that a killed `up` left would send clients to nobody
}

func (d *dataDir) file(name string) string   { return filepath.Join(d.path, name) }
func (d *dataDir) runDir() string            { return filepath.Join(d.path, "run") }
func (d *dataDir) socket(name string) string { return filepath.Join(d.runDir(), name+".sock") }
func (d *dataDir) envFile() string           { return d.file("env") }
func (d *dataDir) close() error              { return errors.Join(d.removeEnvFile(), d.lock.Release()) }

func (d *dataDir) removeEnvFile() error {
	if err := os.Remove(d.envFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", d.envFile(), err)
	}
	return nil
}

// writeEnvFile writes lines that a shell can read. It appears whole or not at all: a script may wait for it.
func (d *dataDir) writeEnvFile(lines []string) error {
	text := []byte(strings.Join(lines, "\n") + "\n")
	return writeWhole(d.envFile(), text)
}

func writeWhole(path string, text []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// envLine is NAME=value, quoted only where a shell needs it.
func envLine(name, value string) string {
	if strings.ContainsAny(value, " \t\n'\"\\$`&|;<>()*?[]#~!") {
		value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	return name + "=" + value
}

// readEnvFile reads what writeEnvFile wrote.
func readEnvFile(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "env")) //nolint:gosec // the operator names the directory
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		if unquoted, quoted := strings.CutPrefix(value, "'"); quoted {
			value = strings.ReplaceAll(strings.TrimSuffix(unquoted, "'"), `'\''`, "'")
		}
		out[name] = value
	}
	return out, nil
}
