package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// What the API server is asked at most, unless options say otherwise. client-go's own 5 calls a second would refuse most
// of ten users; the API server's priority and fairness is the real limit, and this one keeps a flood of tokens from
// filling it. With watches an exchange is one call, without them four.
const (
	DefaultQPS   = 400
	DefaultBurst = 800
)

// DefaultCallTimeout bounds one call. An exchange as a whole is bounded by its authenticator.
const DefaultCallTimeout = 2 * time.Second

// DefaultTimeout bounds a whole exchange, for exchange.PodAuthenticator: a hung API server is told within three seconds.
const DefaultTimeout = 2500 * time.Millisecond

// Options configures NewClient.
type Options struct {
	QPS         float32       // calls a second, of exchanges
	Burst       int           // calls at once, of exchanges
	CallTimeout time.Duration // of each; an API server that hangs must not hold callers
	// Wrap sees the calls go by, to trace them; nil: nobody wants to.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// LoadConfig reads a kubeconfig file, or without a path what a pod in the cluster is given.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("this is not a pod in a cluster: name a kubeconfig file")
		}
		if err != nil {
			return nil, fmt.Errorf("read the pod's own credentials: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// Client makes the calls. It is safe for concurrent use.
type Client struct {
	rest     *rest.RESTClient
	timeout  time.Duration
	versions *discovery
	watching *rest.Config // for lists and watches
	http     *http.Client
}

// NewClient returns a Client for the cluster that config reaches. It calls nothing yet.
func NewClient(config *rest.Config, opts Options) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // it would end watches; calls have deadlines
	config.WarningHandler = rest.NoWarnings{}
	if config.UserAgent == "" {
		config.UserAgent = "sallyport-exchange"
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if opts.Wrap != nil {
		config.Wrap(opts.Wrap)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	c := &Client{timeout: opts.CallTimeout, watching: rest.CopyConfig(config), http: httpClient}
	c.watching.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(watchQPS, watchBurst)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(opts.QPS, opts.Burst)
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	c.versions = &discovery{client: c}
	return c, nil
}

// get reads one JSON document. path is of valid segments.
func (c *Client) get(ctx context.Context, path, accept string, into any) error {
	return c.do(ctx, c.rest.Get().AbsPath(path).SetHeader("Accept", accept), into)
}

// post sends one JSON document and reads another.
func (c *Client) post(ctx context.Context, path string, from, into any) error {
	body, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return c.do(ctx, c.rest.Post().AbsPath(path).SetHeader("Content-Type", plainJSON).SetHeader("Accept", plainJSON).Body(body), into)
}

const plainJSON = "application/json"

// do makes one call and no second one: the caller, who is told when to, tries again, and not everybody here at once.
func (c *Client) do(ctx context.Context, r *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	result := r.MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil { // unlike Raw's it has read the Status that the API server sends
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the API server's answer: %w", err)
	}
	return nil
}
