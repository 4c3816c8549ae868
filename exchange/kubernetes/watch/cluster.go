package watch

import (
	"context"
	"errors"

	"sallyport/exchange/sandbox"
)

// errNotWatched says that an object is not at hand, which does not mean that there is none.
var errNotWatched = errors.New("not watched")

// atHand reads one namespace from what the watches keep. It never asks the API server.
type atHand struct{ n *namespace }

func (a atHand) Pod(_ context.Context, _, name string) (sandbox.Pod, error) {
	return a.n.pods.get(name)
}

func (a atHand) Sandbox(_ context.Context, _, name string) (sandbox.Sandbox, error) {
	return a.n.sandboxes.get(name)
}

func (a atHand) Claim(_ context.Context, _, name string) (sandbox.Claim, error) {
	return a.n.claims.get(name)
}

// ServiceAccount implements sandbox.Cluster: they are not watched.
func (a atHand) ServiceAccount(context.Context, string, string) (sandbox.ServiceAccount, error) {
	return sandbox.ServiceAccount{}, errNotWatched
}

// Cluster implements sandbox.Cluster from what the watches keep; service accounts alone are asked of the API server. In a
// namespace that is not watched, or not just now, it fails. A watch may be behind: whoever is not let in on its word must be
// judged by the API server's own (exchange.PodAuthenticator does). To be let in on it is safe: what it has not heard of yet
// ends the key as soon as it does.
func (w *Watch) Cluster() sandbox.Cluster { return cached{w} }

type cached struct{ w *Watch }

func (c cached) Pod(ctx context.Context, namespace, name string) (sandbox.Pod, error) {
	if n := c.w.warmNamespace(namespace); n != nil {
		return atHand{n}.Pod(ctx, namespace, name)
	}
	return sandbox.Pod{}, errNotWatched
}

func (c cached) Sandbox(ctx context.Context, namespace, name string) (sandbox.Sandbox, error) {
	if n := c.w.warmNamespace(namespace); n != nil {
		return atHand{n}.Sandbox(ctx, namespace, name)
	}
	return sandbox.Sandbox{}, errNotWatched
}

func (c cached) Claim(ctx context.Context, namespace, name string) (sandbox.Claim, error) {
	if n := c.w.warmNamespace(namespace); n != nil {
		return atHand{n}.Claim(ctx, namespace, name)
	}
	return sandbox.Claim{}, errNotWatched
}

func (c cached) ServiceAccount(ctx context.Context, namespace, name string) (sandbox.ServiceAccount, error) {
	return c.w.live.ServiceAccount(ctx, namespace, name)
}
