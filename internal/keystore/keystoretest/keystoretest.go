// Package keystoretest says what every key store must do. Each store's own test runs it against the real engine.
package keystoretest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// Factory prepares one empty store and returns how to open it, as often as a test wants: as another process would.
type Factory func(t *testing.T) func(now func() time.Time) keystore.Store

// Deadline bounds every wait for something that must happen.
const Deadline = 10 * time.Second

var start = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

func signed(id string) keystore.Record {
	return keystore.Record{
		ID: id, Kind: keystore.Signed, Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-pod",
		PodNamespace: "agents", PodUID: "uid-1", ServiceAccount: "default",
		Regime:    keystore.Regime{Claim: "run-1", Pool: "py", Started: "warm", Keeps: []string{"memory", "disk"}},
		CreatedAt: start, ExpiresAt: start.Add(15 * time.Minute),
	}
}

// Run runs the conformance tests.
func Run(t *testing.T, prepare Factory) {
	now := func() time.Time { return start }
	ctx := context.Background()

	t.Run("a key comes back as it was stored, from another process too", func(t *testing.T) {
		open := prepare(t)
		a, b := open(now), open(now)
		opaque := keystore.Record{
			ID: "b", Kind: keystore.Static, Namespace: "n", Note: "CI's key", SecretHash: key.HashSecret("x"), CreatedAt: start.Add(time.Second),
		}
		for _, r := range []keystore.Record{opaque, signed("a")} {
			must(t, a.AddKey(ctx, r))
			got, err := b.Key(ctx, r.ID)
			must(t, err)
			if !reflect.DeepEqual(got, r) {
				t.Errorf("got %+v, want %+v", got, r)
			}
		}
		list, err := b.Keys(ctx)
		must(t, err)
		if len(list) != 2 || list[0].ID != "a" || list[1].ID != "b" {
			t.Errorf("list is not oldest first: %+v", list)
		}
	})

	t.Run("an id is given once", func(t *testing.T) {
		s := prepare(t)(now)
		must(t, s.AddKey(ctx, signed("a")))
		if err := s.AddKey(ctx, signed("a")); err == nil {
			t.Error("the second key with one id was stored")
		}
	})

	t.Run("an unknown id is not found", func(t *testing.T) {
		s := prepare(t)(now)
		must(t, s.AddKey(ctx, signed("a")))
		for _, id := range []string{"nope", "", "A", "a ", "a\x00", "a\x00b", "\x00\xff"} {
			if _, err := s.Key(ctx, id); !errors.Is(err, keystore.ErrNotFound) {
				t.Errorf("Key(%q) = %v", id, err)
			}
			if _, err := s.Introspect(ctx, id); !errors.Is(err, keystore.ErrNotFound) {
				t.Errorf("Introspect(%q) = %v", id, err)
			}
			if err := s.Revoke(ctx, id, "", start); !errors.Is(err, keystore.ErrNotFound) {
				t.Errorf("Revoke(%q) = %v", id, err)
			}
		}
	})

	t.Run("revoking again keeps the first time and reason", func(t *testing.T) {
		s := prepare(t)(now)
		must(t, s.AddKey(ctx, signed("a")))
		must(t, s.Revoke(ctx, "a", "pod deleted", start.Add(time.Second)))
		must(t, s.Revoke(ctx, "a", "again", start.Add(time.Minute)))
		got, err := s.Key(ctx, "a")
		must(t, err)
		if !got.Revoked() || !got.RevokedAt.Equal(start.Add(time.Second)) || got.RevokedFor != "pod deleted" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a revocation reaches every watcher, once each, and those before the watch do not", func(t *testing.T) {
		open := prepare(t)
		a, b := open(now), open(now)
		for _, id := range []string{"old", "x", "y"} {
			must(t, a.AddKey(ctx, signed(id)))
		}
		must(t, a.Revoke(ctx, "old", "", start))
		ctx, cancel := context.WithTimeout(ctx, Deadline)
		defer cancel()
		same, other := watch(ctx, t, a), watch(ctx, t, b)
		must(t, a.Revoke(ctx, "x", "", start))
		select {
		case got := <-same: // at once: whoever revoked may rely on it
			if got != "x" {
				t.Errorf("the same process heard %q, want x", got)
			}
		default:
			t.Error("the same process had not heard when Revoke returned")
		}
		must(t, b.Revoke(ctx, "y", "", start))
		must(t, b.Revoke(ctx, "x", "", start))
		for _, wait := range []struct {
			name, want string
			ids        <-chan string
		}{{"another process", "x", other}, {"another process", "y", other}, {"the same process", "y", same}} {
			select {
			case got := <-wait.ids:
				if got != wait.want {
					t.Errorf("%s heard %q, want %q", wait.name, got, wait.want)
				}
			case <-ctx.Done():
				t.Fatalf("%s did not hear of %q", wait.name, wait.want)
			}
		}
	})

	runIntrospection(t, prepare)
	runPods(t, prepare)
	runSelectors(t, prepare)

	t.Run("verification keys are listed until nothing they signed can be valid", func(t *testing.T) {
		open := prepare(t)
		clock := start
		s := open(func() time.Time { return clock })
		public, _, err := ed25519.GenerateKey(nil)
		must(t, err)
		k := key.VerificationKey{ID: "k", Public: public, NotAfter: start.Add(time.Hour)}
		must(t, s.PublishVerificationKey(ctx, k))
		list, err := s.VerificationKeys(ctx)
		must(t, err)
		if len(list) != 1 || list[0].ID != "k" || !bytes.Equal(list[0].Public, public) || !list[0].NotAfter.Equal(k.NotAfter) {
			t.Errorf("got %+v", list)
		}
		clock = start.Add(time.Hour)
		if list, err = s.VerificationKeys(ctx); err != nil || len(list) != 0 {
			t.Errorf("after its end: %+v, %v", list, err)
		}
	})

	t.Run("prune forgets what expired, keeps what does not expire, and watchers still hear", func(t *testing.T) {
		s := prepare(t)(now)
		must(t, s.AddKey(ctx, signed("a")))
		must(t, s.Revoke(ctx, "a", "", start))
		for _, id := range []string{"admin", "admin-2"} {
			must(t, s.AddKey(ctx, keystore.Record{ID: id, Kind: keystore.Admin, SecretHash: key.HashSecret(id), CreatedAt: start}))
		}
		must(t, s.Revoke(ctx, "admin-2", "", start))
		ctx, cancel := context.WithTimeout(ctx, Deadline)
		defer cancel()
		ids := watch(ctx, t, s)
		n, err := s.Prune(ctx, start.Add(time.Hour))
		must(t, err)
		if n != 1 {
			t.Errorf("pruned %d, want 1", n)
		}
		if _, err := s.Key(ctx, "a"); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("the expired key is still there: %v", err)
		}
		if _, err := s.Introspect(ctx, "a"); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("the expired key is still introspected: %v", err)
		}
		must(t, s.Revoke(ctx, "admin", "", start))
		select {
		case got := <-ids:
			if got != "admin" {
				t.Errorf("heard %q", got)
			}
		case <-ctx.Done():
			t.Fatal("the watcher heard nothing after the prune")
		}
	})

	t.Run("a closed store says that it cannot be read", func(t *testing.T) {
		s := prepare(t)(now)
		must(t, s.Ping(ctx))
		must(t, s.Close())
		if err := s.Ping(ctx); err == nil {
			t.Error("Ping said nothing")
		}
		if _, err := s.Key(ctx, "a"); err == nil || errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("Key = %v: an outage is not an unknown key", err)
		}
		if _, err := s.Introspect(ctx, "a"); err == nil || errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("Introspect = %v: an outage is not an unknown key", err)
		}
	})
}

// watch follows s until ctx ends and returns when it is following.
func watch(ctx context.Context, t *testing.T, s keystore.Store) <-chan string {
	t.Helper()
	const more = 4096 // than any test revokes
	ids := make(chan string, more)
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tell := func(id string, at time.Time) {
			if at.Before(start) || at.After(start.Add(time.Minute)) { // the tests revoke within it
				t.Errorf("the watcher heard that %s was revoked at %s", id, at)
			}
			ids <- id
		}
		if err := s.WatchRevocations(ctx, tell, func() { close(ready) }); err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	select {
	case <-ready:
	case <-ctx.Done():
		t.Fatal("the watch did not begin")
	}
	return ids
}

func idsOf(list []keystore.Record) (ids []string) {
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
