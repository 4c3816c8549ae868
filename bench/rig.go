package main

import (
	"context"
	"fmt"
	"log"
	"runtime"
	"strings"
	"time"
)

// rig is what both benchmarks stand on.
type rig struct {
	options
	fleet   *fleet
	machine *machine
	world   *world
	load    string // load average before anything was done
	before  span   // and what others did then
}

// newRig looks at the machine while it rests, and mints the keys. Close it in the end.
func newRig(ctx context.Context, o options) (*rig, error) {
	f := &fleet{}
	r := &rig{options: o, fleet: f, machine: &machine{fleet: f}, load: loadAverage()}
	from, err := r.machine.read()
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, o.window); err != nil {
		return nil, err
	}
	if r.before, err = r.machine.since(from); err != nil {
		return nil, err
	}
	log.Printf("minting %d keys", o.live)
	r.world, err = newWorld(ctx, o.live)
	return r, err
}

func (r *rig) close() error {
	r.fleet.stopAll()
	return r.world.remove()
}

// heading says what was run, and on what.
func (r *rig) heading(page *strings.Builder, command, how string) {
	fmt.Fprintf(page, "`%s`: %d connections, %s, %d CPUs, %s, %s/%s, %s. Medians, with the lowest and the highest round.\n\n",
		command, r.connections, how, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly))
}

// conditions says what the machine was like. Without it a figure is worth nothing.
func (r *rig) conditions(page *strings.Builder) {
	during := r.machine.total().neighbours()
	fmt.Fprintf(page, "Load average before: %s. Neighbours took %.0f %% of the machine before, %.0f %% while it was measured.\n",
		r.load, 100*r.before.neighbours(), 100*during)
	if during > tooBusy {
		page.WriteString("\n**INVALID**: neighbours took more than a quarter of the machine. Measure again when it is quiet.\n")
	}
}
