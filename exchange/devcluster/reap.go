package devcluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sallyport/exchange/sandbox"
	"sallyport/internal/keystore"
	"sallyport/internal/periodic"
)

// KeyStore is what the reaper needs of a key store.
type KeyStore interface {
	PodNamespaces(ctx context.Context) ([]string, error)
	PodKeys(ctx context.Context, podNamespace, pod string) ([]keystore.Record, error)
	RevokeMatching(ctx context.Context, which keystore.Selector, reason string, at time.Time) ([]keystore.Record, error)
}

// reapEvery is how soon a key ends after its pod. A laptop has few keys, so that looking at all of them costs nothing.
const reapEvery = 500 * time.Millisecond

// Reap revokes the keys of pods that would get none any more, because the pod or what holds it was deleted or made again,
// until ctx ends. It does here what package watch does in a real cluster.
func (c *Cluster) Reap(ctx context.Context, store KeyStore, now func() time.Time, log *slog.Logger) {
	periodic.Run(ctx, reapEvery, func(ctx context.Context) error { return c.reap(ctx, store, now, log) }, func(err error) {
		log.WarnContext(ctx, "it cannot be said which keys have to end; trying again", "error", err)
	})
}

func (c *Cluster) reap(ctx context.Context, store KeyStore, now func() time.Time, log *slog.Logger) error {
	namespaces, err := store.PodNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		keys, err := store.PodKeys(ctx, namespace, "")
		if err != nil {
			return err
		}
		for _, k := range keys {
			_, err := sandbox.Resolve(ctx, c, sandbox.Subject{
				Namespace: k.PodNamespace, ServiceAccount: k.ServiceAccount, PodName: k.Session, PodUID: k.PodUID,
			}, sandbox.Options{})
			var refused *sandbox.RefusedError
			if !errors.As(err, &refused) {
				if err != nil {
					return err
				}
				continue
			}
			ended, err := store.RevokeMatching(ctx, keystore.Selector{PodUID: k.PodUID}, refused.Error(), now())
			if err != nil {
				return err
			}
			for _, r := range ended {
				log.InfoContext(ctx, "key revoked", "key_id", r.ID, "reason", refused.Refusal, "session", r.Session)
			}
		}
	}
	return nil
}
