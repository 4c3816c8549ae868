package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"sallyport/exchange/kubernetes"
	"sallyport/exchange/sandbox"
	"sallyport/internal/keystore"
)

// Store is what is needed of a key store.
type Store interface {
	PodKeys(ctx context.Context, podNamespace, pod string) ([]keystore.Record, error)
	PodNamespaces(ctx context.Context) ([]string, error)
	Revoke(ctx context.Context, id, reason string, at time.Time) error
	RevokeMatching(ctx context.Context, which keystore.Selector, reason string, at time.Time) ([]keystore.Record, error)
}

// Options configures New. All of it is needed but Namespaces and AskAgain.
type Options struct {
	Client     *kubernetes.Client
	Store      Store
	Rules      sandbox.Options // the exchange's: a key ends when they would refuse it
	Namespaces []string        // watched from the start, and for good; others when they have a key
	// AskAgain is how long after a refusal for want of permission a watch is tried again; 0: DefaultAskAgain.
	AskAgain time.Duration
	Now      func() time.Time
	Log      *slog.Logger
}

// DefaultAskAgain keeps an exchange that may not watch a thousand namespaces from asking the API server all the time.
const DefaultAskAgain = 5 * time.Minute

const (
	// workers end keys; each does little but wait for the store.
	workers = 4
	// sweepEvery is how often all keys are held against what is at hand, which costs the API server nothing: it finds what
	// another exchange minted a moment after its pod was deleted, and namespaces that another exchange minted for.
	sweepEvery = 30 * time.Second
	// unwatchAfter is the number of sweeps without a live key after which a namespace is watched no longer.
	unwatchAfter = 20
	// mostNamespaces bounds what is watched: three watches each.
	mostNamespaces = 2000
)

// Watch follows namespaces. Run makes it.
type Watch struct {
	Options
	live  sandbox.Cluster
	queue workqueue.TypedRateLimitingInterface[suspect] // holds each suspect once, so never more than there are pods with news
	begin chan string                                   // namespaces that Run is to follow

	mu         sync.Mutex
	namespaces map[string]*followed
	saidFull   bool
}

// graceSlack is added to a grace period: clocks differ, and a pod that is deleted without grace is first said to be about to
// end.
const graceSlack = 2 * time.Second

// followed is a namespace that Run follows.
type followed struct {
	n     *namespace
	stop  context.CancelFunc
	fixed bool // for good
	idle  int  // sweeps without a live key
}

// New returns a Watch.
func New(opts Options) *Watch {
	const pending = 256 // of namespaces at once; one that finds no room is found by the next sweep
	// A watch looks at how things are, not at who may begin: a pod that is being deleted keeps its keys until its grace is
	// over. Tenants are not looked at: labels of service accounts are not watched.
	if opts.AskAgain == 0 {
		opts.AskAgain = DefaultAskAgain
	}
	opts.Rules.AllowTerminating, opts.Rules.TenantLabel = true, ""
	opts.Rules.Now = func() time.Time { return opts.Now().Add(-graceSlack) }
	return &Watch{
		Options:    opts,
		live:       kubernetes.Cluster{Client: opts.Client},
		queue:      workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[suspect](retryFirst, retryMost)),
		begin:      make(chan string, pending),
		namespaces: map[string]*followed{},
	}
}

// When the store or the API server cannot be asked, a suspect is looked at again.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 30 * time.Second
)

// Minted hears of a key just stored: its namespace is watched from now on, and if its pod was deleted meanwhile the key
// ends. It does not wait.
func (w *Watch) Minted(r keystore.Record) {
	f := w.find(r.PodNamespace)
	if f == nil {
		select {
		case w.begin <- r.PodNamespace:
		default: // the next sweep finds it
		}
		return // all keys are looked at once the namespace is warm
	}
	if f.n.warm() {
		w.glance(context.Background(), f.n, r)
	}
}

// Run follows namespaces and ends keys until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer w.queue.ShutDown()
	for range workers {
		wg.Go(func() { w.work(ctx) })
	}
	for _, name := range w.Namespaces {
		w.follow(ctx, &wg, name, true)
	}
	w.sweep(ctx, &wg)
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-w.begin:
			w.follow(ctx, &wg, name, false)
		case <-ticker.C:
			w.sweep(ctx, &wg)
		}
	}
}

// Warm says whether a namespace is followed and all of it is at hand.
func (w *Watch) Warm(name string) bool { return w.warmNamespace(name) != nil }

func (w *Watch) warmNamespace(name string) *namespace {
	if f := w.find(name); f != nil && f.n.warm() {
		return f.n
	}
	return nil
}

func (w *Watch) find(name string) *followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.namespaces[name]
}

// follow begins to follow a namespace, unless it is followed already. Its keys are looked at once it is warm.
func (w *Watch) follow(ctx context.Context, wg *sync.WaitGroup, name string, fixed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "" || w.namespaces[name] != nil {
		return
	}
	if len(w.namespaces) >= mostNamespaces {
		if !w.saidFull {
			w.Log.WarnContext(ctx, "too many namespaces to watch: in others keys live to their end", "most", mostNamespaces, "namespace", name)
		}
		w.saidFull = true
		return
	}
	n, err := newNamespace(w.Options, name, w.queue.Add)
	if err != nil {
		w.Log.WarnContext(ctx, "a namespace cannot be watched; trying again later", "namespace", name, "error", err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w.namespaces[name] = &followed{n: n, stop: stop, fixed: fixed}
	wg.Go(func() { n.run(ctx) })
	wg.Go(func() {
		said := sync.OnceFunc(func() { w.Log.InfoContext(ctx, "watching pods, Sandboxes and claims", "namespace", name) })
		n.whenWarm(ctx, func() {
			said()
			w.look(ctx, n)
		})
	})
}
