// Command bench measures what the inner door costs.
//
//	make bench-straight the door alone, beside a gRPC server that allows everything
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
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatalf("bench: %v", err)
	}
}

var errUsage = errors.New("say what to measure: straight or envoy (-h after it shows the flags)")

// run is main without the process.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	benchmark := map[string]func(context.Context, options) (string, error){"straight": straight, "envoy": throughEnvoy}[args[0]]
	server := map[string]func(context.Context, string) error{allowEverything: serveAllow, backend: serveBackend}[args[0]]
	switch {
	case benchmark != nil:
		o, err := parse(args)
		if err != nil {
			return err
		}
		page, err := benchmark(ctx, o)
		fmt.Print(page)
		return err
	case server != nil && len(args) == 2: // started by a benchmark, with the path of a socket
		return server(ctx, args[1])
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
	flags.DurationVar(&o.paced, "paced", o.paced, "envoy: how long latency is measured at each steady rate in a round")
	flags.IntVar(&o.connections, "connections", o.connections, "how many connections ask")
	flags.IntVar(&o.live, "live", o.live, "how many keys live: all of them are seen by the last variant")
	flags.IntVar(&o.streams, "streams", o.streams, "straight: how many questions are asked at a time on each connection")
	flags.IntVar(&o.headers, "headers", o.headers, "straight: how many more headers are in each check, as an Envoy sends them that is not told which the door needs")
	flags.IntVar(&o.workers, "workers", o.workers, "envoy: how many worker threads it has")
	quick := flags.Bool("quick", false, "whether everything works, in seconds; the figures say nothing")
	if err := flags.Parse(args[1:]); err != nil {
		return o, err
	}
	if *quick {
		o = o.quick()
	}
	return o, o.check()
}
