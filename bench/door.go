package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// door is a process that answers checks: the inner door, or what it is compared with.
type door struct {
	*process
	socket string
	admin  string // the inner door's; empty for others
}

// startDoor starts bin/sallyport extauthz with its defaults, but for what more says.
func (f *fleet) startDoor(ctx context.Context, o options, w *world, name string, more ...string) (*door, error) {
	d := &door{socket: w.socket(name), admin: w.socket(name + "-admin")}
	args := []string{
		"--log-level", "warn", "extauthz", "--keystore", w.store, "--listen", "unix:" + d.socket, "--admin-listen", "unix:" + d.admin,
	}
	p, err := f.start(ctx, o.door, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	d.process = p
	if err := p.await(ctx, func(ctx context.Context) error { return errors.Join(listening(ctx, d.socket), listening(ctx, d.admin)) }); err != nil {
		p.stop()
		return nil, err
	}
	return d, nil
}

// startAllow starts the server that allows everything.
func (f *fleet) startAllow(ctx context.Context, w *world, name string) (*door, error) {
	d := &door{socket: w.socket(name)}
	var err error
	d.process, err = f.startSelf(ctx, allowEverything, d.socket)
	return d, err
}

// sized makes caches that hold so many keys, and keeps the key store out of what is measured: with a TTL of 30 s, keys
// that are used less often than that are read again each time, however large the caches are.
func sized(keys int) []string {
	n := strconv.Itoa(keys)
	return []string{"--revocation-cache-size", n, "--verified-cache-size", n, "--revocation-cache-ttl", "30m"}
}

// listening says whether somebody serves a socket.
func listening(ctx context.Context, socket string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// stats are how much the door was asked, and how often it asked the key store.
type stats struct{ allowed, reads float64 }

func (d *door) stats(ctx context.Context) (stats, error) {
	if d == nil || d.admin == "" {
		return stats{}, nil
	}
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.admin)
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://door/stats", nil)
	if err != nil {
		return stats{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return stats{}, fmt.Errorf("ask the door how it does: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	var report struct {
		Decisions  map[string]float64 `json:"decisions"`
		Revocation struct {
			Reads float64 `json:"store_reads"`
		} `json:"revocation_cache"`
	}
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		return stats{}, fmt.Errorf("read how the door does: %w", err)
	}
	return stats{allowed: report.Decisions["allowed"], reads: report.Revocation.Reads}, nil
}

// For how many of its answers a door reads the key store.
const (
	mostReads  = 0.3 // when it is warm: keys whose TTL is over are read again
	leastReads = 0.95
	allReads   = 1.05 // when it is cold; a refusal costs a read as well
)

// checkMisses makes sure that a door was as cold, or as warm, as its figures are taken for: the share of the answers since
// then for which it read the key store is within low and high.
func (d *door) checkMisses(ctx context.Context, since stats, low, high float64) error {
	if d == nil || d.admin == "" {
		return nil
	}
	now, err := d.stats(ctx)
	if err != nil {
		return err
	}
	if share := (now.reads - since.reads) / (now.allowed - since.allowed); share < low || share > high {
		return fmt.Errorf("%.1f %% of the answers read the key store, which should be %.0f to %.0f %%", 100*share, 100*low, 100*high)
	}
	return nil
}
