package kubernetes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sallyport/exchange/sandbox"
)

const (
	// eventsPending bounds the events that wait to be written; more are dropped, since the log has them too.
	eventsPending = 64
	// eventEvery is how often one pod is told the same: a client that tries again in a loop must not fill the cluster.
	eventEvery = time.Minute
	// eventsTold bounds the memory of what was told.
	eventsTold = 1024
	// eventsForbiddenFor is how long nothing is tried in a namespace that does not permit it.
	eventsForbiddenFor = 10 * time.Minute
)

// noEvent are the refusals that are no news of a pod that is there.
var noEvent = map[sandbox.Refusal]bool{sandbox.NotBoundToPod: true, sandbox.PodGone: true, sandbox.PodReplaced: true}

// Events tells whoever looks at a pod (kubectl describe pod) why it got no key. Permission to create events is optional:
// without it, it says so once a namespace and goes on without.
type Events struct {
	client *Client
	now    func() time.Time
	log    *slog.Logger
	queue  chan refusalNote
	told   *lru.Cache[refusalNote, time.Time]

	mu        sync.Mutex
	forbidden map[string]time.Time // namespace → until when; no larger than what is watched
}

type refusalNote struct {
	namespace, pod, uid string
	refusal             sandbox.Refusal
}

// NewEvents returns an Events. Run writes what it is told.
func NewEvents(client *Client, now func() time.Time, log *slog.Logger) *Events {
	told, err := lru.New[refusalNote, time.Time](eventsTold)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &Events{client: client, now: now, log: log, queue: make(chan refusalNote, eventsPending), told: told, forbidden: map[string]time.Time{}}
}

// Refused notes that a pod got no key. It does not wait.
func (e *Events) Refused(s sandbox.Subject, r sandbox.Refusal) {
	n := refusalNote{namespace: s.Namespace, pod: s.PodName, uid: s.PodUID, refusal: r}
	if noEvent[r] || n.pod == "" || e.isForbidden(n.namespace) {
		return
	}
	if at, ok := e.told.Get(n); ok && e.now().Sub(at) < eventEvery {
		return
	}
	e.told.Add(n, e.now())
	select {
	case e.queue <- n:
	default: // the log has it
	}
}

// Run writes events until ctx ends.
func (e *Events) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-e.queue:
			e.write(ctx, n)
		}
	}
}

func (e *Events) write(ctx context.Context, n refusalNote) {
	at := metav1.NewTime(e.now())
	event := corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{GenerateName: n.pod + ".", Namespace: n.namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: n.namespace, Name: n.pod, UID: types.UID(n.uid)},
		Type:           corev1.EventTypeWarning,
		Reason:         "NoMemoryKey",
		Message:        n.refusal.Sentence(),
		Source:         corev1.EventSource{Component: "sallyport-exchange"},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	var created metav1.TypeMeta
	err := e.client.post(ctx, "/api/v1/namespaces/"+n.namespace+"/events", event, &created)
	switch {
	case err == nil, ctx.Err() != nil:
	case apierrors.IsForbidden(err):
		e.mu.Lock()
		e.forbidden[n.namespace] = e.now().Add(eventsForbiddenFor)
		e.mu.Unlock()
		e.log.InfoContext(ctx, "events on pods are not permitted, and so not written; the log has the refusals", "namespace", n.namespace)
	default:
		e.log.WarnContext(ctx, "an event could not be written", "namespace", n.namespace, "pod", n.pod, "error", err)
	}
}

func (e *Events) isForbidden(namespace string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	until, ok := e.forbidden[namespace]
	if ok && e.now().After(until) {
		delete(e.forbidden, namespace)
		return false
	}
	return ok
}
