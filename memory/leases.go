package memory

import (
	"context"
	"sync"
	"time"

	"sallyport/memory/agent"
)

const (
	// renewEvery is how often leases are looked after. The shortest lease lasts five times as long.
	renewEvery = time.Second
	// maxTracked bounds the leases that are kept alive by reads. Beyond it a lease lasts from write to write.
	maxTracked = 1 << 16
)

// leases remembers when the holder of a lease was last heard of, so that its reads keep the lease alive without writing
// each time. A lease ends its full length after the last call of its holder: so an agent whose client died can be resumed,
// and one that reads every now and then is not lost. What is kept here may be lost: the store has the leases themselves.
type leases struct {
	mu   sync.Mutex
	seen map[leaseKey]sign
}

type leaseKey struct{ namespace, agent string }

// sign is a sign of life.
type sign struct {
	epoch   int64
	ttl     time.Duration
	at      time.Time
	expires time.Time // as the store has it
}

func newLeases() *leases { return &leases{seen: map[leaseKey]sign{}} }

// heard notes a call by the holder of a lease, of which the store knows the end given.
func (l *leases) heard(namespace string, r agent.Record, expires, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := leaseKey{namespace, r.Agent}
	if _, known := l.seen[k]; !known && len(l.seen) >= maxTracked {
		return
	}
	l.seen[k] = sign{epoch: r.Lease.Epoch, ttl: r.Lease.TTL, at: now, expires: expires}
}

// end returns when a lease ends, which may be later than the store knows.
func (l *leases) end(namespace string, r agent.Record) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.seen[leaseKey{namespace, r.Agent}]
	if end := x.at.Add(x.ttl); ok && x.epoch == r.Lease.Epoch && end.After(r.Lease.Expires) {
		return end
	}
	return r.Lease.Expires
}

// forget drops a lease that was given back.
func (l *leases) forget(namespace, agentID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, leaseKey{namespace, agentID})
}

// due returns the leases whose end has to move because their holder was heard of since, and drops those that have ended.
// It waits until a third of a lease is gone, so that a busy reader does not cost a write each second.
func (l *leases) due(now time.Time) []Extension {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Extension
	for k, x := range l.seen {
		end := x.at.Add(x.ttl)
		switch {
		case !end.After(now):
			delete(l.seen, k)
		case end.After(x.expires) && x.expires.Sub(now) <= x.ttl*2/3:
			x.expires = end
			l.seen[k] = x
			out = append(out, Extension{Namespace: k.namespace, Agent: k.agent, Epoch: x.epoch, Expires: end})
		}
	}
	return out
}

// handOver ends all leases that are tracked, at now.
func (l *leases) handOver(now time.Time) []Extension {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Extension, 0, len(l.seen))
	for k, x := range l.seen {
		out = append(out, Extension{Namespace: k.namespace, Agent: k.agent, Epoch: x.epoch, Expires: now})
		delete(l.seen, k)
	}
	return out
}

func (s *Service) renew(ctx context.Context) {
	due := s.leases.due(s.clock())
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	if err := s.store.Extend(ctx, due); err != nil && ctx.Err() == nil {
		s.log.Error("cannot extend leases; they end unless their holders write", "leases", len(due), "error", err)
	}
}
