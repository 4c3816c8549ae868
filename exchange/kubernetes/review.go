package kubernetes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"sallyport/exchange"
	"sallyport/exchange/sandbox"
)

// maxTokenBytes is far above a projected token, which has about 1.5 KiB.
const maxTokenBytes = 8 << 10

// Reviewer verifies tokens by TokenReview. It implements exchange.Reviewer.
type Reviewer struct {
	client   *Client
	audience string
	now      func() time.Time
	flights  flights
	refused  *refusedTokens
}

// NewReviewer returns a Reviewer for tokens that were projected for the audience. The audience must not be one of the API
// server's own (--api-audiences): every pod's default token would then pass.
func NewReviewer(client *Client, audience string, now func() time.Time) *Reviewer {
	return &Reviewer{client: client, audience: audience, now: now, refused: newRefusedTokens(now)}
}

// Review implements exchange.Reviewer. Reviews of one token at the same time are one call.
func (r *Reviewer) Review(ctx context.Context, token string) (sandbox.Subject, error) {
	if len(token) > maxTokenBytes {
		return sandbox.Subject{}, reject("malformed", "the token is longer than any service-account token", nil)
	}
	// What cannot be valid, whatever its signature is worth, costs the API server nothing.
	said, ok := unverified(token)
	switch {
	case !ok:
		return sandbox.Subject{}, reject("malformed", "this is not a service-account token: send the content of the projected file", nil)
	case !slices.Contains(said.Audience, r.audience):
		return sandbox.Subject{}, r.wrongAudience(nil)
	case said.ExpiresAt == nil:
		return sandbox.Subject{}, reject("no_expiry", "the token never expires: project one, which does", nil)
	}
	id := sha256.Sum256([]byte(token))
	if err := r.refused.get(id); err != nil {
		return sandbox.Subject{}, err
	}
	return r.flights.do(ctx, id, r.client.timeout, func(ctx context.Context) (sandbox.Subject, error) {
		s, err := r.review(ctx, token, said)
		var rejected *exchange.RejectedError
		if errors.As(err, &rejected) {
			r.refused.add(id, rejected)
		}
		return s, err
	})
}

func (r *Reviewer) review(ctx context.Context, token string, said claimed) (sandbox.Subject, error) {
	review := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{r.audience}}}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
	var answer struct {
		Status authenticationv1.TokenReviewStatus `json:"status"`
	}
	if err := r.client.post(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", review, &answer); err != nil {
		return sandbox.Subject{}, call{verb: "create", resource: "tokenreviews.authentication.k8s.io"}.failure(err)
	}
	switch status := answer.Status; {
	case !status.Authenticated:
		return sandbox.Subject{}, r.rejection(status.Error, said)
	case !slices.Contains(status.Audiences, r.audience):
		// An authenticator that knows nothing of audiences lets every token pass.
		return sandbox.Subject{}, r.wrongAudience(fmt.Errorf("the API server vouches for audiences %q", status.Audiences))
	default:
		return subject(status.User)
	}
}

func subject(user authenticationv1.UserInfo) (sandbox.Subject, error) {
	const prefix = "system:serviceaccount:"
	name, isAccount := strings.CutPrefix(user.Username, prefix)
	namespace, account, ok := strings.Cut(name, ":")
	if !isAccount || !ok || namespace == "" || account == "" {
		return sandbox.Subject{}, reject("not_a_service_account", "the token is not a service account's: send the pod's projected token", nil)
	}
	return sandbox.Subject{
		Namespace: namespace, ServiceAccount: account, ServiceAccountUID: user.UID,
		PodName: only(user.Extra["authentication.kubernetes.io/pod-name"]), PodUID: only(user.Extra["authentication.kubernetes.io/pod-uid"]),
	}, nil
}

// only returns the one value; of several none is to be trusted.
func only(values authenticationv1.ExtraValue) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// outages are words of the API server about itself and not about the token, which it puts in the same place.
var outages = []string{"etcdserver:", "context deadline exceeded", "connection refused", "timed out", "timeout", "unable to handle", "too many requests"}

func speaksOfOutage(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc(outages, func(outage string) bool { return strings.Contains(words, outage) })
}

// rejection words a refusal. The API server's own words stay in the log: they may change, and speak of more than the
// caller's token.
func (r *Reviewer) rejection(words string, said claimed) error {
	cause := errors.New("the API server says: " + words)
	if speaksOfOutage(words) {
		return fmt.Errorf("review token: %w", cause)
	}
	if said.expired(r.now()) {
		return reject("expired", "the token has expired: read the projected file again, the kubelet renews it", cause)
	}
	return reject("not_accepted",
		"the cluster does not accept the token: its pod or service account is gone, or another cluster signed it; read the projected file again", cause)
}

func (r *Reviewer) wrongAudience(cause error) error {
	return reject("wrong_audience", fmt.Sprintf(
		"the token is for another audience: project one with audience %q (serviceAccountToken.audience in the pod's volume)", r.audience), cause)
}

func reject(reason, message string, cause error) error {
	return &exchange.RejectedError{Reason: reason, Message: message, Cause: cause}
}
