package watch

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"sallyport/exchange/kubernetes"
	"sallyport/exchange/sandbox"
)

// entry is what is kept of an object: what the rules look at, and what client-go's stores need to keep it.
type entry[T any] struct {
	metav1.ObjectMeta // namespace, name, UID and resource version alone
	object            T
}

func newEntry[T any](m metav1.Object, object T) *entry[T] {
	return &entry[T]{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion()},
		object:     object,
	}
}

// feed keeps the objects of one kind in one namespace at hand.
type feed[T any] struct {
	n        *namespace
	informer cache.SharedIndexInformer
	resource string
	live     atomic.Bool // a watch is open, and what it follows is complete
	broken   atomic.Bool // the log has it
	refused  atomic.Bool // for want of permission, the last time
}

// newFeed returns a feed that convert reads objects for, which index puts into indexes, and which tells changed of changes:
// before is nil for a new object, after for one that is gone. It does not tell of objects that were there when it began.
func newFeed[T any](
	lw kubernetes.ListWatch, n *namespace,
	convert func(any) (metav1.Object, T, error), indexers map[string]func(T) []string, changed func(before, after *T),
) (*feed[T], error) {
	f := &feed[T]{n: n, resource: lw.Resource}
	f.informer = cache.NewSharedIndexInformerWithOptions(f.follow(lw), lw.Example, cache.SharedIndexInformerOptions{Indexers: indexesOf(indexers)})
	err := f.informer.SetTransform(func(object any) (any, error) {
		if _, ok := object.(*entry[T]); ok {
			return object, nil // client-go may ask twice
		}
		meta, converted, err := convert(object)
		if err != nil {
			return nil, err
		}
		return newEntry(meta, converted), nil
	})
	if err != nil {
		return nil, err
	}
	if err := f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) { f.trouble(ctx, err) }); err != nil {
		return nil, err
	}
	_, err = f.informer.AddEventHandler(handler(changed))
	return f, err
}

func indexesOf[T any](indexers map[string]func(T) []string) cache.Indexers {
	out := cache.Indexers{}
	for name, index := range indexers {
		out[name] = func(object any) ([]string, error) {
			if e, ok := object.(*entry[T]); ok {
				return index(e.object), nil
			}
			return nil, nil
		}
	}
	return out
}

func handler[T any](changed func(before, after *T)) cache.ResourceEventHandler {
	get := func(object any) *T {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok { // a re-list did not find it
			object = gone.Obj
		}
		if e, ok := object.(*entry[T]); ok {
			return &e.object
		}
		return nil
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				changed(nil, get(object))
			}
		},
		UpdateFunc: func(before, after any) { changed(get(before), get(after)) },
		DeleteFunc: func(object any) { changed(get(object), nil) },
	}
}

// follower is a ListWatch that knows whether it is up to date.
type follower struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported makes client-go list before it watches: then an open watch means a complete list.
func (follower) IsWatchListSemanticsUnSupported() bool { return true }

func (f *feed[T]) follow(lw kubernetes.ListWatch) cache.ListerWatcher {
	return follower{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			f.live.Store(false)
			if f.refused.Load() && !sleep(ctx, f.n.askAgain) {
				return nil, ctx.Err()
			}
			return lw.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			f.live.Store(false)
			w, err := lw.Watch(ctx, o)
			if err == nil {
				f.live.Store(true)
				f.refused.Store(false)
				f.n.watchOpened()
				if f.broken.Swap(false) {
					f.n.log.InfoContext(ctx, "the watch goes on", "resource", f.resource, "namespace", f.n.name)
				}
			}
			return w, err
		},
	}}
}

// trouble hears of a list or a watch that failed. client-go tries again by itself, ever more slowly.
func (f *feed[T]) trouble(ctx context.Context, err error) {
	f.live.Store(false)
	forbidden := kubernetes.IsForbidden(err)
	f.refused.Store(forbidden)
	switch {
	case ctx.Err() != nil:
	case forbidden:
		if !f.n.forbidden.Swap(true) {
			f.n.log.WarnContext(ctx, "watching is not permitted: in this namespace keys outlive their pods, up to their end; grant list and watch on pods, sandboxes and sandboxclaims (deploy/rbac.yaml)",
				"resource", f.resource, "namespace", f.n.name)
		}
	case !f.broken.Swap(true):
		f.n.log.WarnContext(ctx, "the watch broke; trying again", "resource", f.resource, "namespace", f.n.name, "error", err)
	}
}

// sleep waits for d. It returns false when ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// warm says whether the objects at hand are all there are, as far as a watch can tell.
func (f *feed[T]) warm() bool { return f.live.Load() && f.informer.HasSynced() }

// get returns an object at hand, or sandbox.ErrNotFound.
func (f *feed[T]) get(name string) (object T, err error) {
	e, ok, err := f.informer.GetStore().GetByKey(f.n.name + "/" + name)
	if err != nil {
		return object, err
	}
	kept, isEntry := e.(*entry[T])
	if !ok || !isEntry {
		return object, sandbox.ErrNotFound
	}
	return kept.object, nil
}

// by returns the objects with a value in an index.
func (f *feed[T]) by(index, value string) (out []T) {
	found, err := f.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil // there is no such index: a mistake that every test of it shows
	}
	for _, e := range found {
		if kept, ok := e.(*entry[T]); ok {
			out = append(out, kept.object)
		}
	}
	return out
}
