package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// system is a server that is measured, over HTTP as its clients reach it.
type system struct {
	name   string
	url    string
	header http.Header // says which namespace
	size   int         // beliefs in the namespace
	client *http.Client
}

func (s *system) post(path string, body any) (time.Duration, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	r.Header = s.header
	began := time.Now()
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	_ = resp.Body.Close() // it was read
	if err == nil && (resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"isError":true`))) {
		err = fmt.Errorf("%s: %d %.300s", path, resp.StatusCode, answer)
	}
	return took, err
}

// tool calls a tool over MCP.
func (s *system) tool(name string, arguments object) (time.Duration, error) {
	return s.post("/mcp", object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": name, "arguments": arguments}})
}

// operation is what is measured: call does it once, for the nth time, by one of the clients.
type operation struct {
	name string
	call func(s *system, client, n int) (time.Duration, error)
}

// figures are what calls took.
type figures struct {
	took []time.Duration
	all  time.Duration // from the first call to the last
}

func (f figures) String() string {
	slices.Sort(f.took)
	at := func(share float64) float64 {
		return float64(f.took[int(share*float64(len(f.took)-1))].Microseconds()) / 1000
	}
	return fmt.Sprintf("p50 %8.2f ms  p99 %8.2f ms  %8.0f/s", at(0.5), at(0.99), float64(len(f.took))/f.all.Seconds())
}

// Bounds of one measurement.
const (
	rounds      = 5
	perRound    = 40
	forOneRound = 2 * time.Second
	manyClients = 16
)

// measure runs an operation against every system in turn, round after round, so that what else the machine does meanwhile
// falls on all of them.
func measure(t *testing.T, systems []*system, o operation, clients int) {
	t.Helper()
	results := make([]figures, len(systems))
	for round := range rounds {
		for i, s := range systems {
			round := s.round(t, o, clients, round)
			results[i].took = append(results[i].took, round.took...)
			results[i].all += round.all
		}
	}
	for i, s := range systems {
		t.Logf("%-22s %2d clients  %-12s %7d beliefs  %s", o.name, clients, s.name, s.size, results[i])
	}
}

func (s *system) round(t *testing.T, o operation, clients, round int) (out figures) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for client := range clients {
		wg.Go(func() {
			for n := range perRound {
				if time.Since(began) > forOneRound && n > 0 {
					return
				}
				took, err := o.call(s, client, (round*clients+client)*perRound+n)
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
	for _, d := range out.took {
		out.all += d / time.Duration(clients) // what a call needs beside the operation, such as releasing an agent, is not counted
	}
	return out
}
