package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sallyport/exchange/sandbox"
	"sallyport/gateway"
	"sallyport/internal/keystore"
)

// Identity is who holds a token, as the cluster says.
type Identity struct {
	Tenant         string // the service account's namespace, or what a label on it says
	Agent          string
	Session        string // the pod's name
	PodNamespace   string // the Kubernetes namespace
	PodUID         string
	ServiceAccount string
	Regime         keystore.Regime
	EndsAt         time.Time // no key may live longer; zero: any may
}

// Namespace is the one memory namespace that the identity reaches.
func (i Identity) Namespace() string { return i.Tenant + ":" + i.Agent }

// Authenticator says whose a token is. It returns a *gateway.Error.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}

// Reviewer verifies a token. It returns a *RejectedError for one that is not valid, and any other error if it could not
// find out; a *gateway.Error among those goes to the caller as it is.
type Reviewer interface {
	Review(ctx context.Context, token string) (sandbox.Subject, error)
}

// RejectedError says that a token is not valid.
type RejectedError struct {
	Reason  string // one word, for the log
	Message string // a sentence for the caller, which says what to do
	Cause   error  // the issuer's or the library's words, for the log alone
}

// Error returns the message and the cause, for logs.
func (e *RejectedError) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// PodAuthenticator verifies a token and follows its pod's owners. A *gateway.Error of the reviewer or the cluster goes to
// the caller as it is.
type PodAuthenticator struct {
	Reviewer Reviewer
	Cluster  sandbox.Cluster
	// Watched answers from what a watch keeps at hand. It is asked first, and believed when it speaks for a pod; if it does
	// not, it may be behind, and Cluster decides. May be nil.
	Watched sandbox.Cluster
	Options sandbox.Options
	// Refused hears of every pod that a good token is for and that gets no key all the same. It must not wait. May be nil.
	Refused func(s sandbox.Subject, r sandbox.Refusal)
	Timeout time.Duration // of the whole; 0: as long as the caller waits
}

// clusterRetryAfter is what a client is told when the cluster cannot be asked.
const clusterRetryAfter = 2 * time.Second

// Authenticate implements Authenticator.
func (p *PodAuthenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	subject, err := p.Reviewer.Review(ctx, token)
	var (
		rejected *RejectedError
		worded   *gateway.Error
	)
	switch {
	case errors.As(err, &rejected):
		return Identity{}, unauthenticated(rejected.Reason, rejected.Message, rejected.Cause)
	case errors.As(err, &worded):
		return Identity{}, worded
	case err != nil:
		return Identity{}, unavailable("token_review_failed", "the token cannot be verified just now: try again", clusterRetryAfter, err)
	}
	agent, err := p.resolve(ctx, subject)
	var refused *sandbox.RefusedError
	switch {
	case errors.As(err, &refused):
		if p.Refused != nil {
			p.Refused(subject, refused.Refusal)
		}
		cause := fmt.Errorf("pod %s/%s uid %s", subject.Namespace, subject.PodName, subject.PodUID)
		return Identity{}, unauthenticated(string(refused.Refusal), refused.Error(), cause)
	case errors.As(err, &worded):
		return Identity{}, worded
	case err != nil:
		return Identity{}, unavailable("cluster_unavailable", "the cluster cannot be asked about the pod just now: try again", clusterRetryAfter, err)
	}
	id := Identity{
		Tenant: agent.Tenant, Agent: agent.Name, Session: subject.PodName,
		PodNamespace: subject.Namespace, PodUID: subject.PodUID, ServiceAccount: subject.ServiceAccount,
		Regime: keystore.Regime(agent.Regime), EndsAt: agent.EndsAt,
	}
	return id, checkIdentity(id)
}

func (p *PodAuthenticator) resolve(ctx context.Context, s sandbox.Subject) (sandbox.Agent, error) {
	if p.Watched != nil {
		if agent, err := sandbox.Resolve(ctx, p.Watched, s, p.Options); err == nil {
			return agent, nil
		}
	}
	return sandbox.Resolve(ctx, p.Cluster, s, p.Options)
}

// checkIdentity refuses names that do not fit a memory namespace, and says which one.
func checkIdentity(id Identity) error {
	if len(id.Namespace()) > gateway.MaxNamespaceBytes {
		return invalid(http.StatusUnprocessableEntity, fmt.Sprintf(
			"the namespace %q with the agent's name %q is longer than %d bytes: give the claim, or the pod without one, a shorter name",
			id.Tenant, id.Agent, gateway.MaxNamespaceBytes))
	}
	if err := gateway.CheckNamespace(id.Namespace()); err != nil {
		return invalid(http.StatusUnprocessableEntity, err.Error())
	}
	return nil
}
