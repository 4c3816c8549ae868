package envoy

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

// logFormat is how Envoy writes a log entry: level, component, text. The first two hold no space.
const logFormat = "%l %n %v"

const (
	maxLogLine  = 8 << 10 // bytes of one line that are kept
	keptEntries = 5       // of the last errors, to explain a death
)

// logForwarder takes Envoy's stderr and passes each line on, with its level. It keeps the last errors.
type logForwarder struct {
	to *slog.Logger

	mu     sync.Mutex
	line   []byte
	errors []string
}

func newLogForwarder(to *slog.Logger) *logForwarder { return &logForwarder{to: to} }

// Write never fails: a log must not stop what it describes.
func (f *logForwarder) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			f.keep(p)
			return n, nil
		}
		f.keep(p[:end])
		f.forward()
		p = p[end+1:]
	}
}

func (f *logForwarder) keep(p []byte) {
	if room := maxLogLine - len(f.line); len(p) > room {
		p = p[:room]
	}
	f.line = append(f.line, p...)
}

// Flush passes on a last line without an end.
func (f *logForwarder) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forward()
}

func (f *logForwarder) forward() {
	line := strings.TrimSpace(string(f.line))
	f.line = f.line[:0]
	if line == "" {
		return
	}
	level, component, text := parseLogLine(line)
	f.to.Log(context.Background(), level, text, "component", component)
	if level >= slog.LevelError {
		f.errors = append(f.errors, text)
		if len(f.errors) > keptEntries {
			f.errors = f.errors[1:]
		}
	}
}

// lastErrors returns what Envoy complained of last.
func (f *logForwarder) lastErrors() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.errors...)
}

// parseLogLine takes a line apart. One that is not in our format (a crash, a library) is a warning.
func parseLogLine(line string) (level slog.Level, component, text string) {
	name, rest, _ := strings.Cut(line, " ")
	component, text, ok := strings.Cut(rest, " ")
	level, known := levels[name]
	switch {
	case !ok || !known:
		return slog.LevelWarn, "", line
	case text == "caught ENVOY_SIGTERM": // a warning to Envoy; we sent it
		return slog.LevelDebug, component, text
	}
	return level, component, text
}

var levels = map[string]slog.Level{
	"trace":    slog.LevelDebug,
	"debug":    slog.LevelDebug,
	"info":     slog.LevelInfo,
	"warning":  slog.LevelWarn,
	"error":    slog.LevelError,
	"critical": slog.LevelError,
}
