package keystoretest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// runPods holds a store to what revoking by pod needs.
func runPods(t *testing.T, prepare Factory) {
	now := func() time.Time { return start }
	ctx := context.Background()
	of := func(id, namespace, pod, uid string) keystore.Record {
		r := signed(id)
		r.PodNamespace, r.Session, r.PodUID = namespace, pod, uid
		return r
	}

	t.Run("the keys of pods are found by namespace and by name, while they live", func(t *testing.T) {
		s := prepare(t)(now)
		expired := of("expired", "a", "p", "1")
		expired.CreatedAt, expired.ExpiresAt = start.Add(-time.Hour), start.Add(-key.Leeway)
		for _, r := range []keystore.Record{
			of("k1", "a", "p", "1"), of("k2", "a", "p", "2"), of("k3", "a", "q", "3"), of("k4", "b", "p", "4"), of("gone", "c", "p", "5"), expired,
			{ID: "static", Kind: keystore.Static, Namespace: "a:p", Session: "p", SecretHash: []byte("x"), CreatedAt: start},
		} {
			must(t, s.AddKey(ctx, r))
		}
		must(t, s.Revoke(ctx, "gone", "", start))
		for _, want := range []struct {
			namespace, pod string
			ids            []string
		}{{"a", "p", []string{"k1", "k2"}}, {"a", "", []string{"k1", "k2", "k3"}}, {"b", "", []string{"k4"}}, {"c", "", nil}, {"a", "r", nil}, {"", "", nil}} {
			list, err := s.PodKeys(ctx, want.namespace, want.pod)
			must(t, err)
			if got := idsOf(list); !slices.Equal(got, want.ids) {
				t.Errorf("PodKeys(%q, %q) = %v, want %v", want.namespace, want.pod, got, want.ids)
			}
		}
		namespaces, err := s.PodNamespaces(ctx)
		must(t, err)
		if !slices.Equal(namespaces, []string{"a", "b"}) {
			t.Errorf("namespaces = %v", namespaces)
		}
	})

	t.Run("revoking a pod ends all of its keys and no other, and watchers hear", func(t *testing.T) {
		s := prepare(t)(now)
		for _, r := range []keystore.Record{of("k1", "a", "p", "1"), of("k2", "a", "p", "1"), of("other", "a", "p", "2"), of("before", "a", "p", "1")} {
			must(t, s.AddKey(ctx, r))
		}
		must(t, s.Revoke(ctx, "before", "an admin's reason", start))
		ctx, cancel := context.WithTimeout(ctx, Deadline)
		defer cancel()
		heard := watch(ctx, t, s)
		ended, err := s.RevokeMatching(ctx, keystore.Selector{PodUID: "1"}, "its pod is gone", start.Add(time.Second))
		must(t, err)
		if got := idsOf(ended); !slices.Equal(got, []string{"k1", "k2"}) {
			t.Errorf("it ended %v", got)
		}
		for range ended {
			select {
			case id := <-heard: // at once: whoever revoked may rely on it
				if id != "k1" && id != "k2" {
					t.Errorf("the watcher heard %q", id)
				}
			default:
				t.Error("the watcher had not heard when RevokeMatching returned")
			}
		}
		for id, reason := range map[string]string{"k1": "its pod is gone", "k2": "its pod is gone", "other": "", "before": "an admin's reason"} {
			r, err := s.Key(ctx, id)
			must(t, err)
			if r.RevokedFor != reason || r.Revoked() != (reason != "") {
				t.Errorf("%s: revoked=%t for %q, want %q", id, r.Revoked(), r.RevokedFor, reason)
			}
		}
		for _, uid := range []string{"1", "unknown"} {
			if again, err := s.RevokeMatching(ctx, keystore.Selector{PodUID: uid}, "again", start); err != nil || len(again) != 0 {
				t.Errorf("of pod %q, again: %v, %v", uid, again, err)
			}
		}
	})

	t.Run("of many who revoke one pod at once, one hears of each key", func(t *testing.T) {
		open := prepare(t)
		a, b := open(now), open(now)
		const keys, each = 5, 4
		for i := range keys {
			must(t, a.AddKey(ctx, of(string(rune('a'+i)), "n", "p", "1")))
		}
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			all []string
		)
		for _, s := range []keystore.Store{a, b} {
			for range each {
				wg.Go(func() {
					ended, err := s.RevokeMatching(ctx, keystore.Selector{PodUID: "1"}, "gone", start)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					all = append(all, idsOf(ended)...)
					mu.Unlock()
				})
			}
		}
		wg.Wait()
		slices.Sort(all)
		if !slices.Equal(all, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("heard of %v", all)
		}
	})
}
