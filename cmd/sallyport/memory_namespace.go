package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"sallyport/memory"
)

// memoryNamespaceFlags name the namespace that a command is about.
type memoryNamespaceFlags struct {
	memoryStoreFlags
	Namespace string `help:"Such as agents:run-1." required:"" placeholder:"N"`
}

func (f memoryNamespaceFlags) with(ctx context.Context, fn func(memory.Store) error) (err error) {
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return fn(store)
}

type memoryExportCommand struct {
	memoryNamespaceFlags
}

// Run writes the export to standard output.
func (c *memoryExportCommand) Run(env *environment) error {
	return c.with(env.ctx, func(s memory.Store) error { return memory.Export(env.ctx, s, c.Namespace, env.stdout) })
}

type memoryImportCommand struct {
	memoryNamespaceFlags
	File string `arg:"" optional:"" help:"What to read; standard input unless given." placeholder:"FILE"`
}

// Run reads an export.
func (c *memoryImportCommand) Run(env *environment) error {
	var from io.Reader = os.Stdin
	if c.File != "" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it is only read
		from = f
	}
	return c.with(env.ctx, func(s memory.Store) error {
		got, err := memory.Import(env.ctx, s, c.Namespace, from)
		if errors.Is(err, memory.ErrNotEmpty) {
			return fmt.Errorf("%w: choose another, or erase it first", err)
		}
		if err == nil {
			_, err = fmt.Fprintf(env.stdout, "imported %d events and %d agents\n", got.Events, got.Agents)
		}
		return err
	})
}

type memoryEraseCommand struct {
	memoryNamespaceFlags
	Yes bool `help:"Do it. Without this the command only says what it would erase."`
}

// Run erases, if it was told so twice.
func (c *memoryEraseCommand) Run(env *environment) error {
	return c.with(env.ctx, func(s memory.Store) error {
		if !c.Yes {
			events := 0
			err := s.Read(env.ctx, c.Namespace, func(r memory.Reader) error {
				found, err := r.Events(memory.EventFilter{})
				events = len(found)
				return err
			})
			if err != nil {
				return err
			}
			return fmt.Errorf("namespace %s holds %d events; erasing them cannot be undone: say --yes to do it", c.Namespace, events)
		}
		if err := s.Erase(env.ctx, c.Namespace); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.stdout, "erased %s\n", c.Namespace)
		return err
	})
}
