package envoy_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sallyport/gateway"
	"sallyport/gateway/xds"
)

// The matrix of what may go wrong at the inner door. Whatever it is, nothing reaches the backend.
func TestTheDoorFailsShut(t *testing.T) {
	unavailable := &gateway.Error{Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "the key store cannot be asked", RetryAfter: 7 * time.Second}
	for _, tt := range []struct {
		name   string
		fault  func(*rig)
		status int
		code   gateway.Code
		body   string // the exact body, if the server's own must stay
	}{
		{
			name:   "down",
			fault:  func(r *rig) { r.authz.server.Stop() },
			status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable,
		},
		{
			name: "slow",
			fault: func(r *rig) {
				r.authz.respondFunc(func(ctx context.Context, _ *authv3.CheckRequest) (*authv3.CheckResponse, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
			},
			status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable,
		},
		{
			name: "a gRPC error",
			fault: func(r *rig) {
				r.authz.respondFunc(func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
					return nil, status.Error(codes.Internal, "broken")
				})
			},
			status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable,
		},
		{
			name: "gRPC says unavailable",
			fault: func(r *rig) {
				r.authz.respondFunc(func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
					return nil, status.Error(codes.Unavailable, "broken")
				})
			},
			status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable,
		},
		{
			name: "an answer with a bad header",
			fault: func(r *rig) {
				yes := allow()
				yes.GetOkResponse().Headers = append(yes.GetOkResponse().Headers, overwrite("x-sallyport-agent", "a\r\nx: y"))
				r.authz.respond(yes)
			},
			status: http.StatusInternalServerError, code: gateway.CodeInternal,
		},
		{
			name:   "denied with 401",
			fault:  func(r *rig) { r.authz.respond(deny(unauthenticated)) },
			status: http.StatusUnauthorized, code: gateway.CodeUnauthenticated, body: string(unauthenticated.Body()),
		},
		{
			name:   "denied with 403",
			fault:  func(r *rig) { r.authz.respond(deny(mismatch)) },
			status: http.StatusForbidden, code: gateway.CodeNamespaceMismatch, body: string(mismatch.Body()),
		},
		{
			name:   "denied with 503",
			fault:  func(r *rig) { r.authz.respond(deny(unavailable)) },
			status: http.StatusServiceUnavailable, code: gateway.CodeUnavailable, body: string(unavailable.Body()),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(g *xds.Gateway) { g.Authz.Timeout = 300 * time.Millisecond })
			tt.fault(r)
			began := time.Now()
			got := r.get(t, "/v1/x")
			wantError(t, got, tt.status, tt.code)
			if tt.body != "" && got.body != tt.body {
				t.Errorf("body = %s, want the server's own: %s", got.body, tt.body)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("took %s", took)
			}
			if n := r.backend.count(); n != 0 {
				t.Errorf("%d requests reached the backend", n)
			}
		})
	}
}

var (
	unauthenticated = &gateway.Error{Status: http.StatusUnauthorized, Code: gateway.CodeUnauthenticated, Message: "the key has expired: get a new one"}
	mismatch        = &gateway.Error{Status: http.StatusForbidden, Code: gateway.CodeNamespaceMismatch, Message: "the key is for another namespace"}
)

func TestDenialsKeepTheirHeaders(t *testing.T) {
	r := newRig(t)
	r.authz.respond(deny(unauthenticated))
	if got := r.get(t, "/v1/x").header.Get("WWW-Authenticate"); got != gateway.Challenge {
		t.Errorf("WWW-Authenticate = %q", got)
	}
	r.authz.respond(deny(&gateway.Error{Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Message: "no store", RetryAfter: 7 * time.Second}))
	if got := r.get(t, "/v1/x").header.Values("Retry-After"); len(got) != 1 || got[0] != "7" {
		t.Errorf("Retry-After = %q, want the server's", got)
	}
	// A refusal without words (the status alone) stays a refusal.
	r.authz.respond(&authv3.CheckResponse{Status: &rpcstatus.Status{Code: int32(codes.PermissionDenied)}})
	if got := r.get(t, "/v1/x"); got.status != http.StatusForbidden {
		t.Errorf("status = %d", got.status)
	}
	if n := r.backend.count(); n != 0 {
		t.Errorf("%d requests reached the backend", n)
	}
}

func TestASlowCheckIsWaitedForUntilTheTimeout(t *testing.T) {
	r := newRig(t)
	r.authz.respondFunc(func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
		time.Sleep(300 * time.Millisecond) // slow, within the timeout of 3 s
		return allow(), nil
	})
	if got := r.get(t, "/v1/x"); got.status != http.StatusOK {
		t.Errorf("status = %d, %s", got.status, got.body)
	}
	if n := r.authz.checks(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestACheckThatIsLostIsAskedAgain(t *testing.T) {
	r := newRig(t)
	var failed atomic.Bool
	r.authz.respondFunc(func(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
		if failed.CompareAndSwap(false, true) {
			return nil, status.Error(codes.Unavailable, "restarting")
		}
		return allow(), nil
	})
	if got := r.get(t, "/v1/x"); got.status != http.StatusOK {
		t.Errorf("status = %d, %s", got.status, got.body)
	}
	if n := r.authz.checks(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// Envoy's own errors speak the same language as everything behind it.
func TestEnvoysOwnErrorsAreJSON(t *testing.T) {
	r := newRig(t)
	many := make([]string, 120)
	for i := range many {
		many[i] = "X-Many-" + strings.Repeat("a", i+1) + ": x"
	}
	for _, tt := range []struct {
		name    string
		line    string
		headers []string
		status  int
		code    gateway.Code
	}{
		{"no such path", "GET /nowhere", nil, http.StatusNotFound, gateway.CodeNotFound},
		{"the root", "GET /", nil, http.StatusNotFound, gateway.CodeNotFound},
		{"beside an exact path", "GET /mcp/x", nil, http.StatusNotFound, gateway.CodeNotFound},
		{"an encoded slash", "GET /v1%2fbeliefs", nil, http.StatusBadRequest, gateway.CodeInvalidArgument},
		{"too many headers", "GET /v1/x", many, http.StatusRequestHeaderFieldsTooLarge, gateway.CodeInvalidArgument},
		{"headers too large", "GET /v1/x", []string{"X-Large: " + strings.Repeat("x", 33<<10)}, http.StatusRequestHeaderFieldsTooLarge, gateway.CodeInvalidArgument},
		{"a WebSocket", "GET /v1/x", []string{"Connection: Upgrade", "Upgrade: websocket"}, http.StatusForbidden, gateway.CodeForbidden},
		{"an invalid length", "POST /v1/x", []string{"Content-Length: x"}, http.StatusBadRequest, gateway.CodeInvalidArgument},
		{"length and chunks at once", "POST /v1/x", []string{"Content-Length: 1", "Transfer-Encoding: chunked"}, http.StatusBadRequest, gateway.CodeInvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, r.raw(t, tt.line, tt.headers...), tt.status, tt.code)
		})
	}
	t.Run("HTTP/1.0", func(t *testing.T) {
		conn := dialRaw(t, r)
		if _, err := conn.Write([]byte("GET /v1/x HTTP/1.0\r\nHost: gateway\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, read(t, response), http.StatusUpgradeRequired, gateway.CodeInvalidArgument)
	})
	if n := r.backend.count(); n != 0 {
		t.Errorf("%d requests reached the backend", n)
	}
	t.Run("the backend is down", func(t *testing.T) {
		if err := r.backend.server.Close(); err != nil {
			t.Fatal(err)
		}
		got := r.get(t, "/v1/x")
		wantError(t, got, http.StatusServiceUnavailable, gateway.CodeUnavailable)
		if !strings.Contains(got.body, "was not forwarded") {
			t.Errorf("the answer does not say that nothing happened: %s", got.body)
		}
	})
	t.Run("the exchange is down", func(t *testing.T) {
		if err := r.exchange.server.Close(); err != nil {
			t.Fatal(err)
		}
		wantError(t, r.get(t, "/v1/keys"), http.StatusServiceUnavailable, gateway.CodeUnavailable)
	})
}

func TestTheBackendsOwnErrorsAreItsOwn(t *testing.T) {
	r := newRig(t)
	r.backend.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("mine")) // the test reads it
	})
	if got := r.get(t, "/v1/x"); got.status != http.StatusServiceUnavailable || got.body != "mine" {
		t.Errorf("answer = %+v", got)
	}
	r.backend.handle(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	before := r.backend.count()
	got := r.raw(t, "POST /v1/x", "Content-Length: 0")
	wantError(t, got, http.StatusServiceUnavailable, gateway.CodeUnavailable)
	if !strings.Contains(got.body, "may have acted") {
		t.Errorf("the answer does not warn of a write that may have happened: %s", got.body)
	}
	if n := r.backend.count() - before; n != 1 {
		t.Errorf("a write was sent %d times, want once", n)
	}
}
