package memory

import (
	"context"
	"errors"
	"time"

	"sallyport/memory/agent"
	"sallyport/memory/belief"
	"sallyport/memory/limits"
)

// Store keeps what a memory holds. Every call is about one namespace, which it is given once: what Read and Write hand
// out reaches nothing of another.
//
// Package storetest says in tests what a store has to do.
type Store interface {
	// Read calls fn with one consistent state of the namespace. A namespace that nothing was written to is empty.
	Read(ctx context.Context, namespace string, fn func(Reader) error) error
	// Write calls fn with the namespace to itself: no other Write to it runs meanwhile. What fn wrote is on disk when
	// Write returns nil, and undone when fn fails. A store may call fn again if it could not commit, so fn must have no
	// other effects that matter.
	Write(ctx context.Context, namespace string, fn func(Writer) error) error
	// Extend moves the end of leases that are still of the epoch named, all in one commit.
	Extend(ctx context.Context, leases []Extension) error
	// Erase takes all that the namespace holds away, for good: not even the file has it afterwards. That may take long.
	Erase(ctx context.Context, namespace string) error
	// Namespaces returns names in alphabetical order, at most limit of those that come after one.
	Namespaces(ctx context.Context, after string, limit int) ([]string, error)
	// Ping fails if the store cannot be read.
	Ping(ctx context.Context) error
	Close() error
}

// Extension is a new end for a lease.
type Extension struct {
	Namespace string
	Agent     string
	Epoch     int64
	Expires   time.Time
}

// ErrStaleEpoch says that a write came under a lease that has changed hands since.
var ErrStaleEpoch = errors.New("the lease has changed hands")

// Reader reads one namespace.
type Reader interface {
	BeliefReader
	AgentReader
	VectorReader
}

// Writer reads one namespace and writes to it.
type Writer interface {
	Reader
	BeliefWriter
	VectorWriter

	// Usage returns what the namespace held when the Write began, and what the Write has added to that so far.
	Usage() (held, added limits.Usage, err error)

	// PutLease and PutSession record who may write to an agent. They are not fenced, since they are how an epoch begins.
	PutLease(agentID string, l agent.Lease) error
	PutSession(agentID string, s agent.Session) error
	// Fenced returns the way to write to an agent under an epoch. It fails with ErrStaleEpoch if the agent's lease has
	// another one.
	Fenced(agentID string, epoch int64) (AgentWriter, error)
}

// BeliefReader reads events and what they amount to.
type BeliefReader interface {
	// Beliefs returns what all events of the namespace amount to, those included that are dated ahead of the clock.
	// Without a search they come in the order notes last, subject, predicate, time.
	Beliefs(f Filter) ([]belief.Belief, error)
	// Elsewhere returns the beliefs, notes left out, that have the subject and value of one of those given.
	Elsewhere(of []belief.Belief) ([]belief.Belief, error)
	// Events returns events in order of time.
	Events(f EventFilter) ([]belief.Event, error)
	// Latest returns when the latest event of the subject under one of the predicates is dated; nil if there is none.
	Latest(subject string, predicates []string) (*time.Time, error)
	// Event returns one event; the second result is false if there is none of that id.
	Event(id string) (belief.Event, bool, error)
	// Pairs returns the pairs that have events dated after from and not after to, in no order.
	Pairs(from, to time.Time, subject string) ([]Pair, error)
	// Predicates returns what the namespace defined; Predicate one of them, and false if there is none of that name.
	Predicates() ([]belief.Predicate, error)
	Predicate(name string) (belief.Predicate, bool, error)
}

// BeliefWriter writes events and what they amount to.
type BeliefWriter interface {
	// Append writes events and sets their Seq.
	Append(events []belief.Event) error
	PutBeliefs(beliefs []belief.Belief) error
	DropBeliefs(beliefs []belief.Belief) error
	// ReplaceBeliefs puts beliefs in the place of all that the pair has.
	ReplaceBeliefs(p Pair, beliefs []belief.Belief) error
	Define(p belief.Predicate) error
}

// Pair is a subject and a predicate.
type Pair struct{ Subject, Predicate string }

// Filter selects beliefs. Zero members select nothing out.
type Filter struct {
	Subject, Predicate string
	Key                string // of the value
	NotPredicate       string
	NoNotes            bool
	MinConfidence      float64
	After, Before      *time.Time // both inclusive
	Search             *Search
	Limit              int
}

// Search ranks beliefs: notes after all others; those of a span of time first; then by the words that they share with the
// question, of which a rare one weighs more (Weight); then the newest first. Every store comes to the same order.
type Search struct {
	Words  []string
	Span   belief.Span
	Select bool // leave out what neither shares a word nor lies in the span

	// Meaning is the question as a vector, if it is searched by what it means, too. A store does not look at it.
	Meaning []float32
}

// EventFilter selects events. Zero members select nothing out.
type EventFilter struct {
	Subject    string
	Predicates []string
	UpTo       *time.Time // inclusive
	After      *time.Time // exclusive
	Limit      int
}

// Vector is what a statement means, in the numbers of a model. Its length is 1.
type Vector struct {
	Seq     int64 // of the statement
	Numbers []float32
}

// VectorFilter selects vectors.
type VectorFilter struct {
	Model    string
	Size     int     // how many numbers
	Believed *Filter // of statements that are believed and pass it, search and limit apart; nil selects every statement's
	Limit    int     // so many of the latest statements, whether they have a vector or not
}

// VectorReader reads what statements mean.
type VectorReader interface {
	// Vectors calls fn with those that pass the filter, in no order. Numbers hold them until fn returns.
	Vectors(f VectorFilter, fn func(Vector)) error
	// WithoutVector returns the Seq of statements that have none of the model and size, the latest first. Size 0 is any.
	WithoutVector(model string, size, limit int) ([]int64, error)
	// Statements returns the events of these Seq, and BeliefsOf the beliefs that rest on them. What is not there is left out.
	Statements(seqs []int64) ([]belief.Event, error)
	BeliefsOf(seqs []int64) ([]belief.Belief, error)
}

// VectorWriter writes what statements mean.
type VectorWriter interface {
	// PutVectors writes vectors of statements that there are, each in the place of the one it had.
	PutVectors(model string, vectors []Vector) error
}

// AgentReader reads the records of agents.
type AgentReader interface {
	// Agents returns the ids of all agents in alphabetical order.
	Agents() ([]string, error)
	// Agent returns what is kept of an agent; of one that was never heard of, a record with nothing but its id.
	Agent(agentID string) (agent.Record, error)
	// Session returns nil if the owner never resumed the agent.
	Session(agentID string, o agent.Owner) (*agent.Session, error)
	// NextRank is larger than the rank of every session of the agent.
	NextRank(agentID string) (int64, error)
	States(agentID string, limit int) ([]agent.State, error)   // newest first
	Turns(agentID string, limit int) ([]agent.Turn, error)     // newest first
	Outputs(agentID string, limit int) ([]agent.Output, error) // newest first
	CountOutputs(agentID string) (int, error)                  //
	Output(agentID, ref string) (agent.Fetched, bool, error)   //
	Pointers(agentID string) ([]agent.Pointer, error)          // by name
	OpenActions(agentID string) ([]agent.Action, error)        // oldest first
	Actions(agentID string) ([]agent.Action, error)            // oldest first
	Action(agentID string, seq int64) (agent.Action, bool, error)
}

// AgentWriter writes the records of one agent under one epoch.
type AgentWriter interface {
	PutState(s agent.State) error
	PutTurn(t agent.Turn) error                     // the agent's last turn from now on
	PutOutput(o agent.Output, content string) error // the newest from now on, in the place of one with its ref
	PutPointer(p agent.Pointer) error               // in the place of one with its name
	RemovePointer(name string) error                //
	PutAction(a agent.Action) error                 // in the place of the one with its seq, if any
	NextOutput() (int64, error)                     // a number that no other call for the agent returns
	Extend(expires time.Time) error                 // moves the end of the lease
}
