package watch

import (
	"context"
	"log/slog"
	"sync/atomic"

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
	informer  cache.SharedIndexInformer
	namespace string
	resource  string
	log       *slog.Logger
	opened    func()
	live      atomic.Bool  // a watch is open, and what it follows is complete
	broken    atomic.Bool  // said so already
	forbidden *atomic.Bool // said so already, of this or another kind in the namespace
}

// newFeed returns a feed that convert reads objects for, which index puts into indexes, and which tells changed of changes:
// before is nil for a new object, after for one that is gone. It does not tell of objects that were there when it began.
func newFeed[T any](
	lw kubernetes.ListWatch, n *namespace, log *slog.Logger,
	convert func(any) (metav1.Object, T, error), indexers map[string]func(T) []string, changed func(before, after *T),
) (*feed[T], error) {
	f := &feed[T]{namespace: n.name, resource: lw.Resource, log: log, opened: n.watchOpened, forbidden: &n.forbidden}
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
			return lw.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			f.live.Store(false)
			w, err := lw.Watch(ctx, o)
			if err == nil {
				f.live.Store(true)
				f.opened()
				if f.broken.Swap(false) {
					f.log.InfoContext(ctx, "the watch goes on", "resource", f.resource, "namespace", f.namespace)
				}
			}
			return w, err
		},
	}}
}

// trouble hears of a list or a watch that failed. client-go tries again by itself, ever more slowly.
func (f *feed[T]) trouble(ctx context.Context, err error) {
	f.live.Store(false)
	switch {
	case ctx.Err() != nil:
	case kubernetes.IsForbidden(err):
		if !f.forbidden.Swap(true) {
			f.log.WarnContext(ctx, "watching is not permitted: in this namespace keys outlive their pods, up to their end; grant list and watch on pods, sandboxes and sandboxclaims (deploy/rbac.yaml)",
				"resource", f.resource, "namespace", f.namespace)
		}
	case !f.broken.Swap(true):
		f.log.WarnContext(ctx, "the watch broke; trying again", "resource", f.resource, "namespace", f.namespace, "error", err)
	}
}

// warm says whether the objects at hand are all there are, as far as a watch can tell.
func (f *feed[T]) warm() bool { return f.live.Load() && f.informer.HasSynced() }

// get returns an object at hand, or sandbox.ErrNotFound.
func (f *feed[T]) get(name string) (object T, err error) {
	e, ok, err := f.informer.GetStore().GetByKey(f.namespace + "/" + name)
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
