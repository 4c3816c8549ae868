package kubernetes_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sallyport/exchange/kubernetes"
	"sallyport/exchange/kubernetes/kubetest"
	"sallyport/exchange/sandbox"
)

func (r *rig) events() []corev1.Event {
	r.t.Helper()
	list, err := r.cluster.Admin.CoreV1().Events(r.Name).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// tell runs an Events until the test ends.
func (r *rig) tell(now func() time.Time) *kubernetes.Events {
	e := kubernetes.NewEvents(r.client, now, slog.New(slog.NewJSONHandler(r.log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { e.Run(ctx); close(done) }()
	r.t.Cleanup(func() { cancel(); <-done })
	return e
}

func TestAPodIsToldWhyItGotNoKey(t *testing.T) {
	r := newRig(t, defaults())
	var offset atomic.Int64
	e := r.tell(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
	pod := r.Pod("waiting", "default")
	subject := sandbox.Subject{Namespace: r.Name, ServiceAccount: "default", PodName: pod.Name, PodUID: string(pod.UID)}
	r.eventually("the permission counts", func() bool {
		offset.Add(int64(11 * time.Minute)) // what was forbidden, or told, is tried again
		e.Refused(subject, sandbox.InWarmPool)
		return len(r.events()) > 0
	})
	first := r.events()[0]
	if first.InvolvedObject.UID != pod.UID || first.Reason != "NoMemoryKey" || !strings.Contains(first.Message, "still in warm pool") {
		t.Errorf("%+v", first)
	}
	before := len(r.events())
	for range 10 {
		e.Refused(subject, sandbox.InWarmPool) // a client in a loop
		e.Refused(subject, sandbox.PodGone)    // no pod is there to be told
	}
	e.Refused(subject, sandbox.ClaimGone)
	r.eventually("another reason is told", func() bool { return len(r.events()) == before+1 })
}

func TestWithoutPermissionNothingIsWrittenAndThatIsSaidOnce(t *testing.T) {
	s := defaults()
	s.leave = []kubetest.Without{{Resource: "events", Verbs: []string{"create"}}}
	r := newRig(t, s)
	e := r.tell(time.Now)
	for i := range 5 {
		e.Refused(sandbox.Subject{Namespace: r.Name, PodName: "p" + string(rune('0'+i)), PodUID: "u"}, sandbox.InWarmPool)
		r.eventually("it is said", func() bool { return strings.Contains(r.log.String(), "not permitted") })
	}
	if n := strings.Count(r.log.String(), "events on pods are not permitted"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if len(r.events()) != 0 {
		t.Error("something was written")
	}
}
