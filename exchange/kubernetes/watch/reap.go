package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/exchange/sandbox"
	"sallyport/internal/keystore"
)

// work looks at suspects until the queue is shut down.
func (w *Watch) work(ctx context.Context) {
	for {
		s, ended := w.queue.Get()
		if ended {
			return
		}
		err := w.judge(ctx, s)
		switch {
		case err == nil:
			w.queue.Forget(s)
		case ctx.Err() == nil:
			w.Log.WarnContext(ctx, "it cannot be said whether a pod's keys have to end; trying again", "namespace", s.namespace, "pod", s.pod, "error", err)
			w.queue.AddRateLimited(s)
		}
		w.queue.Done(s)
	}
}

// judgeTimeout bounds the look at one suspect.
const judgeTimeout = 10 * time.Second

// judge ends the keys of a pod that it should not have.
func (w *Watch) judge(ctx context.Context, s suspect) error {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	if s.goneUID != "" {
		return w.revokePod(ctx, s, s.goneUID, "its pod was deleted, or has finished") // a watch does not say which
	}
	keys, err := w.Store.PodKeys(ctx, s.namespace, s.pod)
	if err != nil || len(keys) == 0 {
		return err
	}
	n := w.warmNamespace(s.namespace)
	if n == nil {
		return nil // nothing can be said; all keys are looked at when it is warm again
	}
	type holder struct{ podUID, agent string }
	verdicts := map[holder]verdict{} // a pod that renews has many keys
	for _, r := range keys {
		h := holder{r.PodUID, r.Agent}
		v, known := verdicts[h]
		if !known {
			if v, err = w.verdict(ctx, n, r); err != nil {
				return err
			}
			verdicts[h] = v
			if err := w.carryOut(ctx, s, r, v); err != nil {
				return err
			}
		}
		if v.key != "" {
			if err := w.revokeKey(ctx, r, v.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// verdict says what is to become of a key.
type verdict struct {
	pod   string        // why all keys of its pod end; empty: they do not
	key   string        // why the key alone ends; empty: it does not
	again time.Duration // when to look again; 0: when something happens
}

// verdict believes what is at hand when it speaks for a key. When it speaks against it, it may be behind, or one watch
// ahead of another: then the API server has the last word.
func (w *Watch) verdict(ctx context.Context, n *namespace, r keystore.Record) (verdict, error) {
	agent, err := sandbox.Resolve(ctx, atHand{n}, subject(r), w.Rules)
	if err != nil || agent.Name != r.Agent {
		agent, err = sandbox.Resolve(ctx, w.live, subject(r), w.Rules)
	}
	var refused *sandbox.RefusedError
	switch {
	case errors.As(err, &refused):
		return verdict{pod: reason(refused.Refusal)}, nil
	case err != nil:
		return verdict{}, err
	case agent.Name != r.Agent:
		return verdict{key: fmt.Sprintf("its pod is now the agent %q", agent.Name)}, nil
	case !agent.EndsAt.IsZero():
		return verdict{again: max(agent.EndsAt.Sub(w.Rules.Now()), time.Second)}, nil
	}
	return verdict{}, nil
}

// carryOut does what a verdict says of the pod.
func (w *Watch) carryOut(ctx context.Context, s suspect, r keystore.Record, v verdict) error {
	if v.again > 0 {
		w.queue.AddAfter(s, v.again)
	}
	if v.pod == "" {
		return nil
	}
	return w.revokePod(ctx, s, r.PodUID, v.pod)
}

// reasons say why a key was revoked, to whoever lists keys.
var reasons = map[sandbox.Refusal]string{
	sandbox.PodGone:            "its pod was deleted",
	sandbox.PodReplaced:        "its pod was deleted, and another one has its name",
	sandbox.PodFinished:        "its pod has finished",
	sandbox.PodTerminating:     "its pod has outlived its grace period",
	sandbox.SandboxGone:        "its pod's Sandbox was deleted",
	sandbox.SandboxReplaced:    "its pod's Sandbox was deleted, and another one has its name",
	sandbox.SandboxTerminating: "its pod's Sandbox is being deleted, and its grace period is over",
	sandbox.ClaimGone:          "its claim was deleted",
	sandbox.ClaimReplaced:      "its claim was deleted, and another one has its name",
	sandbox.ClaimTerminating:   "its claim is being deleted, and its grace period is over",
	sandbox.NameOfAClaim:       "a claim has the agent's name now, and does not hold its pod",
}

func reason(r sandbox.Refusal) string {
	if text, ok := reasons[r]; ok {
		return text
	}
	return "its pod would get no key any more: " + string(r)
}

func (w *Watch) revokePod(ctx context.Context, s suspect, uid, why string) error {
	ended, err := w.Store.RevokeMatching(ctx, keystore.Selector{PodUID: uid}, why, w.Now())
	if err != nil {
		return err
	}
	for _, r := range ended {
		w.Log.InfoContext(ctx, "key revoked", "key_id", r.ID, "reason", why, "pod_namespace", s.namespace, "session", s.pod, "pod_uid", uid)
	}
	return nil
}

func (w *Watch) revokeKey(ctx context.Context, r keystore.Record, why string) error {
	err := w.Store.Revoke(ctx, r.ID, why, w.Now())
	if err != nil && !errors.Is(err, keystore.ErrNotFound) {
		return err
	}
	w.Log.InfoContext(ctx, "key revoked", "key_id", r.ID, "reason", why, "pod_namespace", r.PodNamespace, "session", r.Session, "pod_uid", r.PodUID)
	return nil
}
