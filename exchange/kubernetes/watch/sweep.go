package watch

import (
	"context"
	"slices"
	"sync"

	"sallyport/exchange/sandbox"
	"sallyport/internal/keystore"
)

// sweep follows the namespaces that have keys, leaves those that had none for long, and looks at all keys.
func (w *Watch) sweep(ctx context.Context, wg *sync.WaitGroup) {
	names, err := w.Store.PodNamespaces(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.WarnContext(ctx, "keys cannot be listed; trying again later", "error", err)
		}
		return
	}
	for _, name := range names {
		w.follow(ctx, wg, name, false)
	}
	for _, n := range w.stillWanted(names) {
		if n.warm() {
			w.look(ctx, n)
		}
	}
}

// stillWanted ends the watch of namespaces that had no key for long, and returns the others.
func (w *Watch) stillWanted(withKeys []string) (out []*namespace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, f := range w.namespaces {
		if f.fixed || slices.Contains(withKeys, name) {
			f.idle = 0
		} else if f.idle++; f.idle >= unwatchAfter {
			f.stop()
			delete(w.namespaces, name)
			continue
		}
		out = append(out, f.n)
	}
	return out
}

// look holds the keys of a namespace against what is at hand, and suspects the pods of those that do not fit.
func (w *Watch) look(ctx context.Context, n *namespace) {
	keys, err := w.Store.PodKeys(ctx, n.name, "")
	if err != nil {
		if ctx.Err() == nil {
			w.Log.WarnContext(ctx, "keys cannot be listed; trying again later", "namespace", n.name, "error", err)
		}
		return
	}
	for _, r := range keys {
		w.glance(ctx, n, r)
	}
}

// glance holds one key against what is at hand.
func (w *Watch) glance(ctx context.Context, n *namespace, r keystore.Record) {
	agent, err := sandbox.Resolve(ctx, atHand{n}, subject(r), w.Rules)
	if err != nil || agent.Name != r.Agent || !agent.EndsAt.IsZero() {
		w.queue.Add(suspect{namespace: n.name, pod: r.Session})
	}
}

// subject is whom a key was minted for.
func subject(r keystore.Record) sandbox.Subject {
	return sandbox.Subject{Namespace: r.PodNamespace, ServiceAccount: r.ServiceAccount, PodName: r.Session, PodUID: r.PodUID}
}
