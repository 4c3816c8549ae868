package envoy_test

import (
	"net/http"
	"testing"

	"sallyport/gateway"
)

func TestRoutes(t *testing.T) {
	r := newRig(t)
	t.Run("the inner door's yes carries the identity to the backend, and takes the key away", func(t *testing.T) {
		got := r.get(t, "/v1/beliefs?q=x")
		if got.status != http.StatusOK {
			t.Fatalf("status = %d, %s", got.status, got.body)
		}
		request := r.backend.last(t)
		id, err := gateway.DefaultHeaders().Parse(request.Header)
		if err != nil || id != identity {
			t.Errorf("identity = %+v, %v; want %+v", id, err, identity)
		}
		if h := request.Header.Get("Authorization"); h != "" {
			t.Errorf("Authorization = %q", h)
		}
	})
}
