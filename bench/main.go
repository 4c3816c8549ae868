// Command bench measures what the inner door costs.
//
//	make bench          the door alone, beside a gRPC server that allows everything
//	make bench-envoy    the door behind a real Envoy, beside other ways of asking, and none
//
// What is compared runs in processes of its own and takes turns, in short rounds of random order; a figure is the median of
// the ratios within the rounds, printed with its spread and with what was wanted, as Markdown. CPU is what the kernel counts
// for each process, so a busy neighbour disturbs it less than it disturbs a latency; how busy the neighbours were is printed.
//
// The door is bin/sallyport as it ships, with its defaults except where the table says otherwise. The command builds nothing
// and changes nothing outside a temporary directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("say what to measure: straight or envoy (-h after it shows the flags)")

// run is main without the process.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "straight":
		o, err := parse(args)
		if err != nil {
			return err
		}
		return straight(ctx, o)
	case allowEverything: // started by the benchmark itself
		return serveAllow(ctx, args[1:])
	default:
		return errUsage
	}
}

// parse reads the flags of a benchmark.
func parse(args []string) (options, error) {
	o := defaults()
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.door, "door", o.door, "the sallyport binary")
	flags.IntVar(&o.rounds, "rounds", o.rounds, "how many rounds")
	flags.DurationVar(&o.window, "time", o.window, "how long each variant is measured in a round")
	flags.IntVar(&o.connections, "connections", o.connections, "how many connections ask, one question at a time on each")
	flags.IntVar(&o.live, "live", o.live, "how many keys live: all of them are seen by the last variant")
	quick := flags.Bool("quick", false, "whether everything works, in seconds; the figures say nothing")
	if err := flags.Parse(args[1:]); err != nil {
		return o, err
	}
	if *quick {
		o = o.quick()
	}
	return o, o.check()
}
