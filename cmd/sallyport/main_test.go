package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestAStoreThatIsNotClosedIsSaid(t *testing.T) {
	var said bytes.Buffer
	env := &environment{log: slog.New(slog.NewTextHandler(&said, nil))}
	env.close(func() error { return nil })
	if said.Len() != 0 {
		t.Errorf("closed, and it says %q", &said)
	}
	env.close(func() error { return errors.New("1 to write") })
	if !strings.Contains(said.String(), "1 to write") {
		t.Errorf("not closed, and it says %q", &said)
	}
}
