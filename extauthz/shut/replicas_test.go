package shut_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/envoy/envoytest"
	"sallyport/gateway"
	"sallyport/internal/keystore"
	"sallyport/internal/pgtest"
)

// soon is what the push promises.
const soon = time.Second

// follower hears of revocations for a replica, as `sallyport extauthz` does, until the test makes it deaf.
type follower struct {
	deaf    atomic.Bool
	resyncs atomic.Int64 // how often it began to listen
}

func follow(t *testing.T, r *replica) *follower {
	t.Helper()
	const pause = 10 * time.Millisecond
	f := &follower{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if !f.deaf.Load() {
				_ = r.store.WatchRevocations(ctx, r.revoked.Revoke, func() { // that it ends is what some tests are about
					r.revoked.Forget()
					f.resyncs.Add(1)
				})
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	f.listensAgain(t, 0)
	return f
}

// listensAgain waits until it has begun to listen since there were so many resyncs.
func (f *follower) listensAgain(t *testing.T, since int64) {
	t.Helper()
	envoytest.Eventually(t, "the replica listens", func() bool { return f.resyncs.Load() > since })
}

// fleet is two Envoys with a door each, on one PostgreSQL, and the exchange that writes it.
type fleet struct {
	server  *pgtest.Server
	address string
	issuer  *issuer
	*clock
	sites     [2]*site
	followers [2]*follower
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{server: pgtest.Start(t), clock: newClock()}
	f.address = f.server.Database(t)
	open := func() keystore.Store {
		store, err := keystore.Open(t.Context(), f.address, f.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	f.issuer = newIssuer(t, open(), f.clock)
	for n := range f.sites {
		r := newReplica(t, open(), f.clock, gateway.DefaultHeaders())
		r.serve(t)
		f.sites[n], f.followers[n] = newSite(t, r, plan{}), follow(t, r)
	}
	return f
}

// known is a key that both replicas keep as good.
func (f *fleet) known(t *testing.T) minted {
	t.Helper()
	m := f.issuer.mint(t)
	for _, s := range f.sites {
		s.try(t, m, passes(m.identity))
	}
	return m
}

// refusesSoon waits until a replica refuses a key, and fails if that takes longer than the push may.
func (s *site) refusesSoon(t *testing.T, m minted) {
	t.Helper()
	began := time.Now()
	envoytest.Eventually(t, "a revoked key is refused", func() bool {
		return http1(t, s.address(), request{headers: []string{m.line()}}.withDefaults()).status == http.StatusUnauthorized
	})
	if took := time.Since(began); took > soon {
		t.Errorf("refused after %s, want %s at the most", took, soon)
	}
	s.try(t, m, unauthenticated("revoked"))
}

// cut ends every connection that listens; the server names it by what it said last, which is a ping after a quiet second. A
// connection that reads may have said that too: reads find another at once.
func (f *fleet) cut(t *testing.T) {
	t.Helper()
	pgtest.Execute(t, f.address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE '-- ping%')`)
}

func TestTwoReplicasOnOnePostgres(t *testing.T) {
	f := newFleet(t)
	one, other := f.sites[0], f.sites[1]
	t.Run("what is revoked through one is refused by both within a second", func(t *testing.T) {
		m, stays := f.known(t), f.known(t)
		if err := one.replica.store.Revoke(t.Context(), m.id, "a test", f.Now()); err != nil {
			t.Fatal(err)
		}
		one.try(t, m, unauthenticated("revoked")) // it was told before Revoke returned
		other.refusesSoon(t, m)
		other.try(t, stays, passes(stays.identity))
	})
	t.Run("one that lost its push reconnects, and believes nothing from before", func(t *testing.T) {
		m := f.known(t)
		before := [2]int64{f.followers[0].resyncs.Load(), f.followers[1].resyncs.Load()}
		f.cut(t)
		f.issuer.revoke(t, m)
		for n, s := range f.sites {
			f.followers[n].listensAgain(t, before[n])
			s.try(t, m, unauthenticated("revoked"))
		}
	})
	t.Run("one that stays deaf refuses within the TTL", func(t *testing.T) {
		m := f.known(t)
		before := f.followers[0].resyncs.Load()
		f.followers[1].deaf.Store(true)
		f.cut(t)
		f.followers[0].listensAgain(t, before)
		f.issuer.revoke(t, m)
		one.refusesSoon(t, m)
		f.advance(ttl - time.Second)
		other.try(t, m, passes(m.identity)) // or it was not deaf
		f.advance(time.Second)
		other.try(t, m, unauthenticated("revoked"))

		before = f.followers[1].resyncs.Load()
		f.followers[1].deaf.Store(false)
		f.followers[1].listensAgain(t, before)
		again := f.known(t)
		f.issuer.revoke(t, again)
		other.refusesSoon(t, again)
	})
	t.Run("while PostgreSQL is away only fresh answers count, and after it all is well at once", func(t *testing.T) {
		warm := f.known(t) // before a push, which would have what is read meanwhile not be kept
		gone := f.issuer.revoke(t, f.issuer.mint(t))
		for _, s := range f.sites {
			s.try(t, gone, unauthenticated("revoked"))
		}
		cold := f.issuer.mint(t)
		f.server.Stop(t)
		for _, s := range f.sites {
			s.try(t, warm, passes(warm.identity))
			s.try(t, gone, unauthenticated("revoked"))
			s.try(t, cold, byTheDoor)
		}
		f.advance(ttl)
		for _, s := range f.sites {
			s.try(t, warm, byTheDoor)
		}
		before := [2]int64{f.followers[0].resyncs.Load(), f.followers[1].resyncs.Load()}
		f.server.Resume(t)
		for n, s := range f.sites {
			s.try(t, cold, passes(cold.identity)) // the first request after it
			s.try(t, warm, passes(warm.identity))
			f.followers[n].listensAgain(t, before[n])
		}
		f.issuer.revoke(t, warm)
		for _, s := range f.sites {
			s.refusesSoon(t, warm)
		}
	})
}
