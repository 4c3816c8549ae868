package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// validateTimeout bounds Validate when its context does not.
const validateTimeout = time.Minute

// Validate asks Envoy itself whether it would start with a configuration (YAML or JSON). It opens no port. Files that the
// configuration names, such as certificates, must exist.
func Validate(ctx context.Context, configuration []byte) error {
	binary, err := Find()
	if err != nil {
		return err
	}
	asJSON, err := toJSON(configuration)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, validateTimeout)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for Envoy's configuration: %w", err)
	}
	var stderr bytes.Buffer
	args := append([]string{"--mode", "validate", "--log-level", "warning", "-c", configPath}, quietly...)
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the operator names the binary
	cmd.Stderr = &stderr
	cmd.ExtraFiles = []*os.File{read}
	err = cmd.Start()
	_ = read.Close() // Envoy has its own
	if err != nil {
		_ = write.Close()
		return fmt.Errorf("start %s: %w", binary, err)
	}
	go feed(write, asJSON)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for Envoy to check the configuration: %w", ctx.Err())
		}
		return fmt.Errorf("envoy refuses the configuration: %s", complaint(stderr.String(), err))
	}
	return nil
}

// complaint picks the errors out of what Envoy wrote, without the configuration that it repeats after them.
func complaint(stderr string, err error) string {
	var out []string
	for line := range strings.Lines(stderr) {
		level, _, text := parseLogLine(strings.TrimSpace(line))
		if level == levels["critical"] {
			out = append(out, shorten(text))
		}
	}
	if len(out) == 0 {
		return err.Error()
	}
	return strings.Join(out, "; ")
}

// shorten keeps an error readable: Envoy may repeat all of its configuration in one.
func shorten(text string) string {
	const most = 1000
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// toJSON is for the pipe, from which Envoy reads nothing else.
func toJSON(configuration []byte) ([]byte, error) {
	var tree any
	if err := yaml.Unmarshal(configuration, &tree); err != nil {
		return nil, fmt.Errorf("read Envoy's configuration: %w", err)
	}
	if tree == nil {
		return nil, errors.New("envoy's configuration is empty")
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("print Envoy's configuration as JSON: %w", err)
	}
	return out, nil
}
