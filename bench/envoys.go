package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"sallyport/envoy"
	"sallyport/gateway/xds"
)

// runningEnvoy is one Envoy in front of the backend.
type runningEnvoy struct {
	*process
	address string // where callers reach it
}

// startEnvoy starts an Envoy with our configuration; change may edit its filters.
func (r *rig) startEnvoy(ctx context.Context, name, authz, behind string, change func([]*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error)) (*runningEnvoy, error) {
	binary, err := envoy.Find()
	if err != nil {
		return nil, err
	}
	admin := r.world.socket(name + "-envoy")
	g := theGateway("unix:"+authz, "unix:"+behind)
	g.Listen, g.Admin = "127.0.0.1:0", xds.Endpoint("unix:"+admin)
	b, err := xds.Bootstrap(g)
	if err != nil {
		return nil, err
	}
	if change != nil {
		if err := changeFilters(b, change); err != nil {
			return nil, fmt.Errorf("change Envoy's filters: %w", err)
		}
	}
	text, err := protojson.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("print Envoy's configuration: %w", err)
	}
	path := filepath.Join(r.world.dir, name+"-envoy.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write Envoy's configuration: %w", err)
	}
	p, err := r.fleet.start(ctx, binary, "-c", path, "--disable-hot-restart", "--log-level", "warning", "--concurrency", strconv.Itoa(r.workers))
	if err != nil {
		return nil, err
	}
	e := &runningEnvoy{process: p}
	return e, p.await(ctx, func(ctx context.Context) (err error) {
		e.address, err = listenAddress(ctx, admin)
		return err
	})
}

// changeFilters edits the HTTP filters of the listener that callers reach.
func changeFilters(b *bootstrapv3.Bootstrap, change func([]*hcmv3.HttpFilter) ([]*hcmv3.HttpFilter, error)) error {
	for _, l := range b.GetStaticResources().GetListeners() {
		if l.GetName() != xds.ListenerName {
			continue
		}
		config := l.GetFilterChains()[0].GetFilters()[0].GetTypedConfig()
		var manager hcmv3.HttpConnectionManager
		if err := config.UnmarshalTo(&manager); err != nil {
			return err
		}
		var err error
		if manager.HttpFilters, err = change(manager.GetHttpFilters()); err != nil {
			return err
		}
		return anypb.MarshalFrom(config, &manager, proto.MarshalOptions{})
	}
	return errors.New("there is no listener named " + xds.ListenerName)
}

// listenAddress asks Envoy's admin interface, once Envoy takes requests, which port it chose.
func listenAddress(ctx context.Context, admin string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", admin)
	}}}
	for _, path := range []string{"/ready", "/listeners"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://envoy"+path, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", fmt.Errorf("ask Envoy: %w", err)
		}
		const most = 64 << 10
		body, err := io.ReadAll(io.LimitReader(response.Body, most))
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return "", fmt.Errorf("read Envoy's answer: %w", err)
		}
		if response.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s is answered %s", path, response.Status)
		}
		for line := range strings.Lines(string(body)) { // sallyport::127.0.0.1:40123
			if address, ok := strings.CutPrefix(strings.TrimSpace(line), xds.ListenerName+"::"); ok {
				return address, nil
			}
		}
	}
	return "", errors.New("envoy lists no listener named " + xds.ListenerName)
}
