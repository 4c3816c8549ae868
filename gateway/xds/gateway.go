package xds

import "time"

// Gateway describes one Envoy in front of one backend. The zero value of an optional field means its default, which
// WithDefaults fills in.
type Gateway struct {
	Node         Node          `yaml:"node,omitempty"`
	Listen       string        `yaml:"listen,omitempty"`       // HOST:PORT; port 0 lets Envoy choose one
	Admin        Endpoint      `yaml:"admin,omitempty"`        // Envoy's admin interface: unix:PATH or a loopback HOST:PORT
	Metrics      string        `yaml:"metrics,omitempty"`      // HOST:PORT for /stats/prometheus and /ready alone; empty for none
	HeaderPrefix string        `yaml:"headerPrefix,omitempty"` // begins the name of every trusted header
	TrustedHops  uint32        `yaml:"trustedHops,omitempty"`  // proxies in front that append to X-Forwarded-For; 0 at the edge
	Backend      Backend       `yaml:"backend"`
	Authz        Authz         `yaml:"authz"`
	Exchange     *Exchange     `yaml:"exchange,omitempty"`  // nil: this Envoy has no outer door
	Tracing      *Tracing      `yaml:"tracing,omitempty"`   // nil: no spans
	AccessLog    string        `yaml:"accessLog,omitempty"` // /dev/stdout, /dev/stderr, a file, or "none"
	MaxStream    time.Duration `yaml:"maxStream,omitempty"` // the longest that one request may last; no longer than a key
	Limits       Limits        `yaml:"limits,omitempty"`
}

// Node names this Envoy to a control plane and in logs.
type Node struct {
	ID      string `yaml:"id,omitempty"`
	Cluster string `yaml:"cluster,omitempty"`
}

// Upstream is where something answers, and how the way there is protected.
type Upstream struct {
	Endpoint Endpoint `yaml:"endpoint"`
	TLS      *TLS     `yaml:"tls,omitempty"`
}

// TLS protects the way to an upstream. Envoy reads the files when it starts.
type TLS struct {
	CA   string `yaml:"ca"`             // PEM file: who may sign the upstream's certificate
	SAN  string `yaml:"san"`            // the name in the upstream's certificate: a DNS name, or a URI such as spiffe://…
	Cert string `yaml:"cert,omitempty"` // PEM file: Envoy's own certificate
	Key  string `yaml:"key,omitempty"`  // PEM file: its key
}

// Backend is what stands behind the gateway.
type Backend struct {
	Upstream `yaml:",inline"`
	Name     string `yaml:"name,omitempty"`  // for statistics and logs
	Paths    []Path `yaml:"paths,omitempty"` // which paths go to it; none means everything, with a key
}

// Path is a path, or all paths under a prefix, that the backend answers. Order does not matter: an exact path goes
// before a prefix, and a longer prefix before a shorter one.
type Path struct {
	Exact  string `yaml:"exact,omitempty"`
	Prefix string `yaml:"prefix,omitempty"` // begins and ends with a slash
	Open   bool   `yaml:"open,omitempty"`   // needs no key: only where there is nothing to protect
	Stream bool   `yaml:"stream,omitempty"` // may stay silent for long (SSE, MCP): no idle timeout, only MaxStream
}

// Authz is the inner door: Envoy's external authorization over gRPC.
type Authz struct {
	Upstream `yaml:",inline"`
	Timeout  time.Duration `yaml:"timeout,omitempty"` // for one check, its retry included
}

// Exchange is the outer door: it turns a pod's token into a key.
type Exchange struct {
	Upstream  `yaml:",inline"`
	TokenRate Rate `yaml:"tokenRate,omitempty"` // for /v1/auth/kubernetes, which costs the API server a TokenReview
	AdminRate Rate `yaml:"adminRate,omitempty"` // for key administration and the published keys
}

// Tracing sends spans of a share of the requests to an OpenTelemetry collector that speaks OTLP over gRPC.
type Tracing struct {
	Upstream `yaml:",inline"`
	Sample   Percent `yaml:"sample,omitempty"`
	Join     bool    `yaml:"join,omitempty"` // go on with the traces that callers begin: they then say what is traced
}

// Rate is a token bucket, one for the whole Envoy: Requests are let through in each Every, and as many at once.
type Rate struct {
	Requests uint32        `yaml:"requests"`
	Every    time.Duration `yaml:"every"`
}

// Limits keep one Envoy from taking its host down.
type Limits struct {
	Connections uint32 `yaml:"connections,omitempty"` // downstream, at most
	HeapMiB     uint32 `yaml:"heapMiB,omitempty"`     // Envoy sheds load as its heap comes near
}

// The defaults. Each can be changed by the field of the same name.
const (
	DefaultListen       = "127.0.0.1:8080"                       // loopback, until an operator says otherwise
	DefaultAdmin        = "unix:/run/sallyport/envoy-admin.sock" // whoever reaches the admin interface can stop Envoy
	DefaultNode         = "sallyport"
	DefaultBackendName  = "backend"
	DefaultAccessLog    = "/dev/stdout"
	DefaultTimeout      = 200 * time.Millisecond // a check is one signature and one cached look-up; Envoy's default surprises nobody when printed
	DefaultMaxStream    = 15 * time.Minute       // a key's life
	DefaultConnections  = 10_000
	DefaultHeapMiB      = 512
	DefaultSample       = 1  // percent
	defaultTokenPerSec  = 20 // TokenReviews per second that one Envoy may cause
	defaultAdminPerSec  = 100
	minTimeout          = 20 * time.Millisecond
	maxTimeout          = 5 * time.Second // longer, and a stalled door holds every caller
	minRateInterval     = 50 * time.Millisecond
	minHeapMiB          = 64
	maxSocketPathLength = 107 // sun_path in Linux, without its final zero byte
)

// WithDefaults returns g with every optional field filled in.
func (g Gateway) WithDefaults() Gateway {
	setDefault(&g.Node.ID, DefaultNode)
	setDefault(&g.Node.Cluster, DefaultNode)
	setDefault(&g.Listen, DefaultListen)
	setDefault(&g.Admin, DefaultAdmin)
	setDefault(&g.HeaderPrefix, defaultPrefix)
	setDefault(&g.AccessLog, DefaultAccessLog)
	setDefault(&g.MaxStream, DefaultMaxStream)
	setDefault(&g.Backend.Name, DefaultBackendName)
	setDefault(&g.Authz.Timeout, DefaultTimeout)
	setDefault(&g.Limits.Connections, DefaultConnections)
	setDefault(&g.Limits.HeapMiB, DefaultHeapMiB)
	if len(g.Backend.Paths) == 0 {
		// Whether an unknown backend streams is not known: do not cut it off.
		g.Backend.Paths = []Path{{Prefix: "/", Stream: true}}
	}
	if g.Tracing != nil {
		t := *g.Tracing // the caller's value stays as it is
		setDefault(&t.Sample, DefaultSample)
		g.Tracing = &t
	}
	if g.Exchange != nil {
		e := *g.Exchange // the caller's value stays as it is
		setDefault(&e.TokenRate, Rate{Requests: defaultTokenPerSec, Every: time.Second})
		setDefault(&e.AdminRate, Rate{Requests: defaultAdminPerSec, Every: time.Second})
		g.Exchange = &e
	}
	return g
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
