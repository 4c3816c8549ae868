package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"sallyport/exchange"
	"sallyport/exchange/oidc"
	"sallyport/exchange/sandbox"
)

// Offline verifies tokens by the cluster's published keys, and asks the API server for those alone. It implements
// exchange.Reviewer, for clusters where one TokenReview an exchange is too much.
//
// What is given up: the API server would notice that a token's service account was deleted, or made again under its name;
// keys cannot tell, and neither can the pod, which still names it. That a pod is gone is noticed all the same: whoever
// follows its owners reads it, and compares its UID with the token's. A signing key that the cluster withdraws is trusted for
// up to ten minutes more.
type Offline struct {
	client   *Client
	audience string
	now      func() time.Time

	flight singleflight.Group // of fetching keys
	mu     sync.Mutex
	keys   *oidc.Reviewer // nil until there are any
	tried  time.Time      // when keys were last asked for
}

const (
	// keysFor is how long the cluster's keys are used before they are fetched again.
	keysFor = 10 * time.Minute
	// keysAtLeast is how long they are used even if a token is signed by none of them: whoever sends forged tokens must not
	// make us fetch keys for each. A cluster publishes a new key before it signs with it.
	keysAtLeast = 10 * time.Second
)

// NewOffline returns an Offline for tokens that were projected for the audience.
func NewOffline(client *Client, audience string, now func() time.Time) *Offline {
	return &Offline{client: client, audience: audience, now: now}
}

// Review implements exchange.Reviewer.
func (o *Offline) Review(ctx context.Context, token string) (sandbox.Subject, error) {
	keys, err := o.current(ctx)
	if err != nil {
		return sandbox.Subject{}, err
	}
	s, err := keys.Review(ctx, token)
	var rejected *exchange.RejectedError
	if !errors.As(err, &rejected) || rejected.Reason != oidc.ReasonBadSignature || !o.due(keysAtLeast) {
		return s, err
	}
	newer, fetchErr := o.refresh(ctx)
	if fetchErr != nil {
		return s, err // the keys that we have do not fit, and others we cannot get
	}
	return newer.Review(ctx, token)
}

// current returns the keys at hand. Those that are old are fetched anew meanwhile, and go on if they cannot be.
func (o *Offline) current(ctx context.Context) (*oidc.Reviewer, error) {
	o.mu.Lock()
	keys := o.keys
	o.mu.Unlock()
	if keys == nil {
		return o.refresh(ctx)
	}
	if o.due(keysFor) {
		o.begin(ctx)
	}
	return keys, nil
}

// due says whether keys were last asked for so long ago.
func (o *Offline) due(after time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now().Sub(o.tried) >= after
}

// begin fetches the keys, once for all who want them at the same time, and whoever may give up waiting.
func (o *Offline) begin(ctx context.Context) <-chan singleflight.Result {
	return o.flight.DoChan("keys", func() (any, error) {
		o.mu.Lock()
		o.tried = o.now()
		o.mu.Unlock()
		keys, err := o.fetch(context.WithoutCancel(ctx)) // each call in it has a deadline of its own
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.keys = keys
		return keys, nil
	})
}

func (o *Offline) refresh(ctx context.Context) (*oidc.Reviewer, error) {
	select {
	case r := <-o.begin(ctx):
		keys, _ := r.Val.(*oidc.Reviewer)
		return keys, r.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("fetch the cluster's keys: %w", errors.Join(errNoAnswer, ctx.Err()))
	}
}

func (o *Offline) fetch(ctx context.Context) (*oidc.Reviewer, error) {
	const configuration, jwks = "/.well-known/openid-configuration", "/openid/v1/jwks"
	var about struct {
		Issuer string `json:"issuer"`
	}
	if err := o.client.get(ctx, configuration, plainJSON, &about); err != nil {
		return nil, call{verb: "get", resource: configuration}.failure(err)
	}
	var set json.RawMessage
	if err := o.client.get(ctx, jwks, "application/jwk-set+json, "+plainJSON, &set); err != nil {
		return nil, call{verb: "get", resource: jwks}.failure(err)
	}
	keys, err := oidc.New(set, oidc.Options{Issuer: about.Issuer, Audience: o.audience, Now: o.now})
	if err != nil {
		return nil, fmt.Errorf("use the cluster's keys: %w", err)
	}
	return keys, nil
}
