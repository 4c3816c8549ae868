package xds

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/gateway"
)

const defaultPrefix = gateway.DefaultPrefix

// Validate says everything that is wrong with g, one line each, with what to do about it. Defaults are filled in first.
func (g Gateway) Validate() error {
	g = g.WithDefaults()
	var p problems
	p.add("listen", checkListen(g.Listen))
	if g.Metrics != "" {
		p.add("metrics", checkListen(g.Metrics))
	}
	p.add("admin", checkAdmin(g.Admin))
	p.add("headerPrefix", checkPrefix(g.HeaderPrefix))
	p.add("node", checkText(g.Node.ID, g.Node.Cluster))
	p.add("accessLog", checkAccessLog(g.AccessLog))
	p.add("maxStream", between(g.MaxStream, time.Second, 24*time.Hour))
	if g.Limits.HeapMiB < minHeapMiB {
		p.add("limits.heapMiB", fmt.Errorf("%d is too little for Envoy to start: use at least %d", g.Limits.HeapMiB, minHeapMiB))
	}
	p.add("backend", g.Backend.check())
	p.add("authz", g.Authz.check())
	if g.Exchange != nil {
		p.add("exchange", g.Exchange.check())
	}
	if g.Tracing != nil {
		p.add("tracing", g.Tracing.check())
	}
	return errors.Join(p...)
}

// problems collects errors, each under the name of its field.
type problems []error

func (p *problems) add(field string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("gateway: %s: %w", field, err))
	}
}

func checkListen(s string) error {
	a, err := parseHostPort(s)
	if err != nil {
		return err
	}
	if !a.isIP() {
		return fmt.Errorf("%q is a name: Envoy binds to an address, such as 127.0.0.1 or 0.0.0.0", a.host)
	}
	return nil
}

func checkAdmin(e Endpoint) error {
	a, err := e.parse()
	if err != nil {
		return err
	}
	if a.path == "" && (!a.isIP() || !a.isLocal()) {
		return fmt.Errorf("%q can be reached from elsewhere, and whoever reaches it can stop Envoy: use unix:/path or 127.0.0.1:PORT", e)
	}
	return nil
}

func checkPrefix(prefix string) error {
	_, err := gateway.NewHeaders(prefix)
	return err
}

func checkAccessLog(path string) error {
	if path != accessLogNone && !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%q is not an absolute path: write /dev/stdout, a whole path, or %q", path, accessLogNone)
	}
	return checkText(path)
}

func checkText(values ...string) error {
	for _, v := range values {
		if !utf8.ValidString(v) {
			return fmt.Errorf("%q is not UTF-8", v)
		}
	}
	return nil
}

func between(d, low, high time.Duration) error {
	if d < low || d > high {
		return fmt.Errorf("%s is out of bounds: use %s to %s", d, low, high)
	}
	return nil
}

func (u Upstream) check() error {
	a, err := u.Endpoint.parse()
	if err != nil {
		return fmt.Errorf("endpoint %w", err)
	}
	if err := checkText(string(u.Endpoint)); err != nil {
		return err
	}
	if u.TLS == nil {
		return nil
	}
	if a.path != "" {
		return errors.New("tls on a unix socket protects nothing: leave one of them out")
	}
	return u.TLS.check()
}

func (t TLS) check() error {
	switch {
	case t.CA == "":
		return errors.New("tls.ca is missing: without it any certificate would do")
	case t.SAN == "":
		return errors.New("tls.san is missing: without it any certificate of that authority would do")
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("tls.cert and tls.key go together: give both or neither")
	}
	return checkText(t.CA, t.SAN, t.Cert, t.Key)
}

func (b Backend) check() error {
	if err := b.Upstream.check(); err != nil {
		return err
	}
	if b.Name == clusterAuthz || b.Name == clusterExchange || b.Name == clusterAdmin || b.Name == clusterCollector {
		return fmt.Errorf("name %q is taken by another part of the gateway: choose another", b.Name)
	}
	seen := map[Path]bool{}
	for _, path := range b.Paths {
		if err := path.check(); err != nil {
			return fmt.Errorf("paths: %w", err)
		}
		key := Path{Exact: path.Exact, Prefix: path.Prefix}
		if seen[key] {
			return fmt.Errorf("paths: %s is listed twice", path)
		}
		seen[key] = true
	}
	return checkText(b.Name)
}

// String returns the path for messages.
func (p Path) String() string {
	if p.Exact != "" {
		return p.Exact
	}
	return p.Prefix + "*"
}

func (p Path) check() error {
	switch {
	case (p.Exact == "") == (p.Prefix == ""):
		return errors.New("each needs either exact or prefix")
	case p.Exact != "" && !strings.HasPrefix(p.Exact, "/"), p.Prefix != "" && !strings.HasPrefix(p.Prefix, "/"):
		return fmt.Errorf("%s does not begin with a slash", p)
	case p.Prefix != "" && !strings.HasSuffix(p.Prefix, "/"):
		return fmt.Errorf("prefix %q does not end with a slash, so it would match %q too: write %q, or exact", p.Prefix, p.Prefix+"x", p.Prefix+"/")
	case p.Prefix == "/" && p.Open:
		return errors.New(`prefix "/" is open, so nothing would need a key: open single paths`)
	case strings.ContainsAny(p.Exact+p.Prefix, "?#%\\"), strings.Contains(p.Exact+p.Prefix, "//"):
		return fmt.Errorf("%s holds ?, #, %%, \\ or //, which never match a normalized path", p)
	}
	return checkText(p.Exact, p.Prefix)
}

func (a Authz) check() error {
	if err := a.Upstream.check(); err != nil {
		return err
	}
	// The endpoint parses: Upstream.check said so.
	if at, _ := a.Endpoint.parse(); !at.isLocal() && (a.TLS == nil || a.TLS.Cert == "") {
		return fmt.Errorf("%q is on another host: add tls with ca, san, cert and key, or put the server on unix:/path", a.Endpoint)
	}
	if err := between(a.Timeout, minTimeout, maxTimeout); err != nil {
		return fmt.Errorf("timeout %w", err)
	}
	return nil
}

func (e Exchange) check() error {
	if err := e.Upstream.check(); err != nil {
		return err
	}
	for _, r := range []struct {
		name string
		rate Rate
	}{{"tokenRate", e.TokenRate}, {"adminRate", e.AdminRate}} {
		if r.rate.Requests == 0 {
			return fmt.Errorf("%s.requests is 0, which would refuse everything: use at least 1", r.name)
		}
		if err := between(r.rate.Every, minRateInterval, time.Hour); err != nil {
			return fmt.Errorf("%s.every %w", r.name, err)
		}
	}
	return nil
}

// Warnings returns what is allowed but should be known: ways that are neither local nor encrypted.
func (g Gateway) Warnings() []string {
	var out []string
	warn := func(name string, u Upstream, why string) {
		if a, err := u.Endpoint.parse(); err == nil && !a.isLocal() && u.TLS == nil {
			out = append(out, fmt.Sprintf("%s: the way to %s is not encrypted: %s; use a unix socket, add tls, or make sure that the network does it", name, u.Endpoint, why))
		}
	}
	warn("backend", g.Backend.Upstream, "whoever reaches it past this gateway can write any trusted header")
	if g.Exchange != nil {
		warn("exchange", g.Exchange.Upstream, "tokens and new keys travel on it")
	}
	if g.Tracing != nil {
		warn("tracing", g.Tracing.Upstream, "who asks for what, and when, can be read on it")
	}
	if ap, err := netip.ParseAddrPort(g.Listen); err == nil && !ap.Addr().IsLoopback() {
		out = append(out, fmt.Sprintf("listen: %s takes keys unencrypted from other hosts; keep it inside the pod network, or end TLS in front of it and set trustedHops", g.Listen))
	}
	return out
}
