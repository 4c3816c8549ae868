package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"sallyport/gateway/xds"
)

const (
	adminTimeout  = 2 * time.Second // for one question to the admin interface, which answers in milliseconds
	maxAdminBytes = 1 << 20
)

// admin asks Envoy's admin interface.
type admin struct {
	client           *http.Client
	network, address string
}

func newAdmin(at xds.Endpoint) *admin {
	network, address := "tcp", string(at)
	if path, ok := at.SocketPath(); ok {
		network, address = "unix", path
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		DisableKeepAlives: true, // Envoy comes and goes, and each must be asked itself
	}
	return &admin{client: &http.Client{Transport: transport, Timeout: adminTimeout}, network: network, address: address}
}

// taken says whether some process listens there already.
func (a *admin) taken(ctx context.Context) bool {
	conn, err := (&net.Dialer{Timeout: adminTimeout}).DialContext(ctx, a.network, a.address)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was written
	return true
}

// ask sends one request and returns the answer's body; any status but 200 is an error.
func (a *admin) ask(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Envoy's admin interface: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAdminBytes))
	if err != nil {
		return nil, fmt.Errorf("read Envoy's answer to %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy answers %s to %s", response.Status, path)
	}
	return body, nil
}

// ready says whether Envoy takes requests.
func (a *admin) ready(ctx context.Context) error {
	_, err := a.ask(ctx, http.MethodGet, "/ready")
	return err
}

// listenAddress returns where callers reach Envoy. It differs from the configuration if that asks for port 0.
func (a *admin) listenAddress(ctx context.Context) (netip.AddrPort, error) {
	body, err := a.ask(ctx, http.MethodGet, "/listeners?format=json")
	if err != nil {
		return netip.AddrPort{}, err
	}
	var answer struct {
		Statuses []struct {
			Name  string `json:"name"`
			Local struct {
				Socket struct {
					Address string `json:"address"`
					Port    uint16 `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return netip.AddrPort{}, fmt.Errorf("read Envoy's listeners: %w", err)
	}
	for _, l := range answer.Statuses {
		if l.Name == xds.ListenerName {
			ip, err := netip.ParseAddr(l.Local.Socket.Address)
			if err != nil {
				return netip.AddrPort{}, fmt.Errorf("read Envoy's listen address: %w", err)
			}
			return netip.AddrPortFrom(ip, l.Local.Socket.Port), nil
		}
	}
	return netip.AddrPort{}, errors.New("envoy lists no listener named " + xds.ListenerName)
}

// drain asks Envoy to take no more connections and to tell clients to leave.
func (a *admin) drain(ctx context.Context) error {
	_, failErr := a.ask(ctx, http.MethodPost, "/healthcheck/fail")
	_, drainErr := a.ask(ctx, http.MethodPost, "/drain_listeners?graceful")
	return errors.Join(failErr, drainErr)
}

// activeRequests counts the requests that are being answered.
func (a *admin) activeRequests(ctx context.Context) (int, error) {
	const stat = "http." + xds.ListenerName + ".downstream_rq_active"
	body, err := a.ask(ctx, http.MethodGet, "/stats?format=json&filter=^http."+xds.ListenerName+".downstream_rq_active$")
	if err != nil {
		return 0, err
	}
	var answer struct {
		Stats []struct {
			Name  string `json:"name"`
			Value int    `json:"value"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("read Envoy's statistics: %w", err)
	}
	for _, s := range answer.Stats {
		if s.Name == stat {
			return s.Value, nil
		}
	}
	return 0, nil // the first request makes the counter
}
