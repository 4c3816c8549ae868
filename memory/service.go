package memory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"sallyport/memory/agent"
	"sallyport/memory/belief"
	"sallyport/memory/limits"
)

// Caller is on whose behalf an operation is done. It is what the gateway vouched for.
type Caller struct {
	Namespace string
	Agent     string      // the only agent that the caller may name; empty allows every one of its namespace
	Owner     agent.Owner // the session that leases are given to
}

// Options are what a Service may be given; the zero value of each member takes its default.
type Options struct {
	Vocabulary *belief.Vocabulary // nil is belief.Closed()
	Now        func() time.Time   // nil is time.Now
	Logger     *slog.Logger       // nil is slog.Default()
	Limits     limits.Limits      // of each namespace; zero members are no limit
	Meaning    *Meaning           // nil is search by words alone
	Extraction *Extraction        // nil keeps a text as it is
}

// Service does the operations of the Memory API.
type Service struct {
	store  Store
	words  belief.Vocabulary
	now    func() time.Time
	log    *slog.Logger
	leases *leases
	holder string // the label of leases that are taken without one

	limits  limits.Limits
	rate    *limits.Rate
	metrics *metrics
	meaning *meaning // nil without

	extraction *extraction // nil without
}

// NewService returns a Service on a store, which stays the caller's to close.
func NewService(store Store, o Options) *Service {
	s := &Service{
		store: store, words: belief.Closed(), now: time.Now, log: slog.Default(), leases: newLeases(), holder: label(),
		limits: o.Limits, metrics: newMetrics(),
	}
	if o.Vocabulary != nil {
		s.words = *o.Vocabulary
	}
	if o.Now != nil {
		s.now = o.Now
	}
	if o.Logger != nil {
		s.log = o.Logger
	}
	s.rate = limits.NewRate(o.Limits.RequestsPerSecond, s.now)
	if o.Meaning != nil {
		s.meaning = newMeaning(*o.Meaning, s.now, s.log, s.metrics)
	}
	if o.Extraction != nil {
		s.extraction = newExtraction(*o.Extraction, s.now, s.log, s.metrics)
	}
	return s
}

// Run keeps leases alive whose holders are, and gives statements their vectors, until ctx ends. Without it a lease lasts
// only as long as its holder writes, and what is new is found by its words alone.
func (s *Service) Run(ctx context.Context) {
	if s.meaning != nil {
		var embedding sync.WaitGroup
		defer embedding.Wait()
		embedding.Go(func() { s.meaning.run(ctx, s.store) })
	}
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.renew(ctx)
		}
	}
}

// Close hands the leases that this process served over to whoever wants them. Nothing is lost by it: a session goes on
// with the agent it held unless another took it meanwhile.
func (s *Service) Close(ctx context.Context) error {
	if err := s.store.Extend(ctx, s.leases.handOver(s.clock())); err != nil {
		return fmt.Errorf("hand leases over: %w", err)
	}
	return nil
}

// Ready fails if the store cannot be read.
func (s *Service) Ready(ctx context.Context) error { return s.store.Ping(ctx) }

// Vocabulary returns which predicates the service knows.
func (s *Service) Vocabulary() belief.Vocabulary { return s.words }

// clock returns the time as events carry it.
func (s *Service) clock() time.Time { return s.now().UTC().Round(0) }

func (s *Service) read(ctx context.Context, c Caller, fn func(Reader) error) error {
	return s.store.Read(ctx, c.Namespace, fn)
}

func label() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), randomHex(4))
}

// newEventID returns a random id.
func newEventID() string { return "m-" + randomHex(12) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}
