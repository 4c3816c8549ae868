package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
)

// variant is one of those that are compared.
type variant struct {
	name string
	turn func(ctx context.Context) (figures, error) // measures it once
	seen map[string][]float64                       // each figure, a value a round
}

// figures are what one turn measured, by name.
type figures map[string]float64

// The figures of every turn.
const (
	answers   = "answers"
	rate      = "answers a second"
	cpuOfDoor = "CPU of the door, µs"
	cpuAuth   = "CPU of the door, µs an answer"
)

// The variants that others are compared with.
const (
	nameAllow = "always-allow (stock grpc-go, checks nothing)"
	nameAgain = "always-allow once more (how precise this is)"
)

// play gives every variant a turn in each round, in random order, so that what changes slowly changes for all alike.
func play(ctx context.Context, rounds int, variants []*variant) error {
	for round := range rounds {
		log.Printf("round %d of %d", round+1, rounds)
		for _, i := range rand.Perm(len(variants)) { //nolint:gosec // an order, not a secret
			v := variants[i]
			got, err := v.turn(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			if v.seen == nil {
				v.seen = map[string][]float64{}
			}
			for name, value := range got {
				v.seen[name] = append(v.seen[name], value)
			}
		}
	}
	return nil
}

// spread is the median of some values, with the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return spread{median: (v[(n-1)/2] + v[n/2]) / 2, low: v[0], high: v[n-1]}
}

// of is the spread of a figure.
func (v *variant) of(figure string) spread { return spreadOf(v.seen[figure]) }

// ratio compares a figure with that of another variant, round by round.
func (v *variant) ratio(figure string, to *variant) spread {
	return v.pair(figure, to, func(a, b float64) float64 { return a / b })
}

func (v *variant) pair(figure string, with *variant, f func(a, b float64) float64) spread {
	var out []float64
	for i, a := range v.seen[figure] {
		out = append(out, f(a, with.seen[figure][i]))
	}
	return spreadOf(out)
}

// together is the CPU of a variant's door for an answer, in all rounds together, beside that of another variant. A median
// does not see what happens in few rounds only, such as a garbage collection of a large heap; this does.
func (v *variant) together(with *variant) float64 {
	perAnswer := func(v *variant) float64 {
		var cpu, n float64
		for i := range v.seen[answers] {
			cpu += v.seen[cpuOfDoor][i]
			n += v.seen[answers][i]
		}
		return cpu / n
	}
	return perAnswer(v) / perAnswer(with)
}

// named finds a variant.
func named(variants []*variant, name string) *variant {
	return variants[slices.IndexFunc(variants, func(v *variant) bool { return v.name == name })]
}
