package kubernetes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"sallyport/exchange"
	"sallyport/gateway"
)

// What a role has to grant so that its users may manage keys: deploy/rbac-admins.yaml.
const (
	adminGroup    = "sallyport.dev"
	adminResource = "keys"
)

// Admins lets those users of the cluster manage keys whom its RBAC allows to. It implements exchange.Admins.
type Admins struct {
	client  *Client
	now     func() time.Time
	refused *refusedTokens
}

// NewAdmins returns an Admins. The exchange needs the permission to create subjectaccessreviews.
func NewAdmins(client *Client, now func() time.Time) *Admins {
	return &Admins{client: client, now: now, refused: newRefusedTokens(now)}
}

// adminRetryAfter is what an admin is told when the cluster cannot be asked.
const adminRetryAfter = 2 * time.Second

// Authorize implements exchange.Admins. The token is one for the API server itself, such as kubectl uses: a pod's token for
// the exchange's audience is none, so that no sandbox manages keys by what it has in its box.
func (a *Admins) Authorize(ctx context.Context, token string, verb exchange.Verb) (string, error) {
	said, ok := unverified(token)
	if !ok || len(token) > maxTokenBytes || said.expired(a.now()) {
		return "", notAnAdmin(nil) // it costs the API server nothing
	}
	user, err := a.user(ctx, token)
	if err != nil {
		return "", err
	}
	review := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: adminGroup, Resource: adminResource, Verb: string(verb)},
	}}
	for name, values := range user.Extra {
		review.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	var answer struct {
		Status authorizationv1.SubjectAccessReviewStatus `json:"status"`
	}
	const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	if err := a.client.post(ctx, path, review, &answer); err != nil {
		return "", adminFailure(call{verb: "create", resource: "subjectaccessreviews.authorization.k8s.io"}, err)
	}
	if !answer.Status.Allowed {
		return "", &gateway.Error{
			Status: http.StatusForbidden, Code: gateway.CodeForbidden, Reason: "not_allowed_by_rbac",
			Message: fmt.Sprintf("the cluster does not allow %q to %s %s.%s: a role grants it (deploy/rbac-admins.yaml)", user.Username, verb, adminResource, adminGroup),
		}
	}
	return user.Username, nil
}

// user asks whose the token is.
func (a *Admins) user(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	id := sha256.Sum256([]byte(token))
	if err := a.refused.get(id); err != nil {
		return authenticationv1.UserInfo{}, notAnAdmin(err)
	}
	review := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}} // the API server's own audiences
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
	var answer struct {
		Status authenticationv1.TokenReviewStatus `json:"status"`
	}
	if err := a.client.post(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", review, &answer); err != nil {
		return authenticationv1.UserInfo{}, adminFailure(call{verb: "create", resource: "tokenreviews.authentication.k8s.io"}, err)
	}
	if !answer.Status.Authenticated {
		cause := errors.New("the API server says: " + answer.Status.Error)
		if speaksOfOutage(answer.Status.Error) {
			return authenticationv1.UserInfo{}, adminFailure(call{verb: "create", resource: "tokenreviews.authentication.k8s.io"}, cause)
		}
		a.refused.add(id, &exchange.RejectedError{Reason: "not_accepted", Message: "the cluster does not accept the token", Cause: cause})
		return authenticationv1.UserInfo{}, notAnAdmin(cause)
	}
	return answer.Status.User, nil
}

func notAnAdmin(cause error) error {
	return &gateway.Error{
		Status: http.StatusUnauthorized, Code: gateway.CodeUnauthenticated, Reason: "neither_key_nor_user", Cause: cause,
		Message: "this is neither a good admin key nor a good token of the cluster: send one as \"Authorization: Bearer …\"",
	}
}

func adminFailure(c call, err error) error {
	failure := c.failure(err)
	var worded *gateway.Error
	if errors.As(failure, &worded) {
		return worded
	}
	return &gateway.Error{
		Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Reason: "cluster_unavailable", RetryAfter: adminRetryAfter,
		Message: "the cluster cannot be asked who you are just now: try again, or use an admin key", Cause: failure,
	}
}
