package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// post calls the system for the nth time.
func (s *system) post(n int, path string, body any) (time.Duration, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	r.Header = s.header(n)
	began := time.Now()
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	_ = resp.Body.Close() // it was read
	if err == nil && (resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"isError":true`))) {
		err = fmt.Errorf("%s of %s: %d %.300s", path, s, resp.StatusCode, answer)
	}
	return took, err
}

// tool calls a tool over MCP.
func (s *system) tool(n int, name string, arguments object) (time.Duration, error) {
	return s.post(n, "/mcp", object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": name, "arguments": arguments}})
}

// operation is what is measured: call does it once, for the nth time, by one of the clients.
type operation struct {
	name string
	call func(s *system, client, n int) (time.Duration, error)
}

// Bounds of one measurement.
const (
	perRound    = 40
	forOneRound = 1500 * time.Millisecond
	manyClients = 16
)

// round is what the calls of one round took.
type round struct {
	took []time.Duration // sorted
	all  time.Duration   // that the clients waited, together, divided by their number
}

// result is what was measured of one operation on one system.
type result struct {
	system    *system
	operation string
	clients   int
	rounds    []round
}

// measure runs an operation against every system, round after round and in random order, so that what else the machine does
// meanwhile falls on all of them.
func measure(t *testing.T, m *machine, systems []*system, o operation, clients int) results {
	t.Helper()
	var out results
	for _, s := range systems {
		if s.measured(o.name) {
			out = append(out, &result{system: s, operation: o.name, clients: clients})
		}
	}
	for n := range rounds {
		for _, i := range rand.Perm(len(out)) {
			r := out[i]
			m.during(t, func() { r.rounds = append(r.rounds, r.system.round(t, o, clients, n)) })
		}
	}
	return out
}

func (s *system) round(t *testing.T, o operation, clients, n int) (out round) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for client := range clients {
		wg.Go(func() {
			for i := range perRound {
				if time.Since(began) > forOneRound && i > 0 {
					return
				}
				took, err := o.call(s, client, s.next())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				out.took = append(out.took, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(out.took) == 0 {
		t.Fatalf("nothing was measured of %s in round %d", s, n)
	}
	for _, d := range out.took {
		out.all += d / time.Duration(clients) // what a call needs beside the operation, such as releasing an agent, is not counted
	}
	slices.Sort(out.took)
	return out
}

// A figure is told of one round. Times are in milliseconds.
type figure func(round) float64

func quantile(share float64) figure {
	return func(r round) float64 {
		return float64(r.took[int(share*float64(len(r.took)-1))].Nanoseconds()) / float64(time.Millisecond)
	}
}

var (
	p50 = quantile(0.5)
	p99 = quantile(0.99)
)

// throughput is in calls a second.
func throughput(r round) float64 { return float64(len(r.took)) / r.all.Seconds() }

// spread is the median of the rounds, with the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	slices.Sort(values)
	return spread{values[len(values)/2], values[0], values[len(values)-1]}
}

func (s spread) show(format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median, s.low, s.high)
}

func (r *result) spread(f figure) spread {
	var values []float64
	for _, round := range r.rounds {
		values = append(values, f(round))
	}
	return spreadOf(values)
}

// ratio compares round by round.
func (r *result) ratio(to *result, f figure) spread {
	var values []float64
	for i, round := range r.rounds {
		values = append(values, f(round)/f(to.rounds[i]))
	}
	return spreadOf(values)
}

type results []*result

func (all results) find(operation string, clients int, name string, size, namespaces int) *result {
	for _, r := range all {
		if r.operation == operation && r.clients == clients && r.system.name == name && r.system.size == size && r.system.namespaces == namespaces {
			return r
		}
	}
	panic(fmt.Sprintf("%s was not measured on %s", operation, name)) // a mistake in the table of what is wanted
}

func (all results) print() {
	fmt.Println("| | clients | | p50, ms | p99, ms | calls a second |\n|---|---|---|---|---|---|")
	for _, r := range all {
		fmt.Printf("| %s | %d | %s | %s | %s | %s |\n", r.operation, r.clients, r.system,
			r.spread(p50).show("%.2f"), r.spread(p99).show("%.2f"), r.spread(throughput).show("%.0f"))
	}
	fmt.Println()
}

// Bounds of what is wanted.
const (
	atMost  = true
	atLeast = false
	flat    = 1.5 // what still counts as flat
)

func wanted(what string, got spread, bound float64, most bool, format string) {
	sign, met := "≥", got.median >= bound
	if most {
		sign, met = "≤", got.median <= bound
	}
	verdict := "not met"
	if met {
		verdict = "met"
	}
	fmt.Printf("| %s | %s %g | %s | %s |\n", what, sign, bound, got.show(format), verdict)
}
