package xds

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is where something listens: "unix:PATH" (absolute) or "HOST:PORT". A plain "http://HOST:PORT" means the same
// as HOST:PORT.
type Endpoint string

// address is an Endpoint taken apart: a socket path, or a host and a port.
type address struct {
	path string
	host string
	port uint32
}

func (e Endpoint) parse() (address, error) {
	if e == "" {
		return address{}, errors.New(`is missing: write "unix:/path/to.sock" or "HOST:PORT"`)
	}
	if path, ok := strings.CutPrefix(string(e), "unix:"); ok {
		return parsePath(strings.TrimPrefix(path, "//"))
	}
	if strings.Contains(string(e), "://") {
		return parseURL(string(e))
	}
	a, err := parseHostPort(string(e))
	if err == nil && a.port == 0 {
		err = fmt.Errorf("%q has port 0: name the port that it listens on", e)
	}
	return a, err
}

func parsePath(path string) (address, error) {
	switch {
	case !strings.HasPrefix(path, "/"):
		return address{}, fmt.Errorf("socket path %q is relative: write unix:/… with the whole path", path)
	case len(path) > maxSocketPathLength:
		return address{}, fmt.Errorf("socket path %s is %d bytes long, and the operating system allows %d: use a shorter directory, such as /run/sallyport",
			path, len(path), maxSocketPathLength)
	case strings.ContainsRune(path, 0):
		return address{}, errors.New("socket path holds a zero byte")
	}
	return address{path: path}, nil
}

func parseURL(s string) (address, error) {
	u, err := url.Parse(s)
	if err != nil {
		return address{}, errors.New(`is no URL: write "unix:/path/to.sock", "HOST:PORT" or "http://HOST:PORT"`) // the URL may hold a password
	}
	switch {
	case u.Scheme != "http":
		return address{}, fmt.Errorf("scheme %q is not supported: write HOST:PORT, and add tls: for an encrypted upstream", u.Scheme)
	case u.User != nil || u.RawQuery != "" || (u.Path != "" && u.Path != "/"):
		return address{}, errors.New("is more than http://HOST:PORT: Envoy forwards paths as they came, so leave path, query and user out")
	case u.Port() == "":
		return parseHostPort(net.JoinHostPort(u.Hostname(), "80"))
	}
	return parseHostPort(u.Host)
}

func parseHostPort(s string) (address, error) {
	host, portText, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, fmt.Errorf(`%q is neither "unix:/path" nor "HOST:PORT"`, s)
	}
	if host == "" {
		return address{}, fmt.Errorf("%q names no host: write 127.0.0.1%s for this host, or 0.0.0.0%s for every interface", s, s, s)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return address{}, fmt.Errorf("%q: port %q is not a number from 0 to 65535", s, portText)
	}
	return address{host: host, port: uint32(port)}, nil
}

// isIP says whether the host is an address, not a name that DNS must resolve.
func (a address) isIP() bool {
	_, err := netip.ParseAddr(a.host)
	return err == nil
}

// isLocal says whether only this host can see what goes there.
func (a address) isLocal() bool {
	if a.path != "" || a.host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(a.host)
	return err == nil && ip.IsLoopback()
}

// SocketPath returns the path of a unix endpoint; ok is false for HOST:PORT and for what cannot be parsed.
func (e Endpoint) SocketPath() (path string, ok bool) {
	a, err := e.parse()
	return a.path, err == nil && a.path != ""
}
