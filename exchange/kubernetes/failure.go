package kubernetes

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sallyport/gateway"
)

// call is what a failed call wanted.
type call struct{ verb, resource, namespace string }

func (c call) String() string {
	if c.namespace == "" {
		return c.verb + " " + c.resource
	}
	return c.verb + " " + c.resource + " in namespace " + c.namespace
}

// notPermittedRetryAfter is what a client is told when the exchange lacks a permission: nobody grants it within seconds.
const notPermittedRetryAfter = 30 * time.Second

// failure words a call's error: a missing permission as what it is, anything else as an outage.
func (c call) failure(err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: %w", c, err)
	}
	return &gateway.Error{
		Status: http.StatusServiceUnavailable, Code: gateway.CodeNotPermitted, Reason: "not_permitted", RetryAfter: notPermittedRetryAfter,
		Message: fmt.Sprintf("the exchange is not permitted to %s: a cluster admin grants it (deploy/rbac.yaml)", c), Cause: err,
	}
}

// noSuchPath says whether the API server does not know the path, in contrast to the object.
func noSuchPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
