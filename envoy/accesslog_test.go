package envoy_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"sallyport/envoy/envoytest"
	"sallyport/gateway"
)

// logLine waits for the only line of the access log.
func logLine(t *testing.T, r *rig) map[string]any {
	t.Helper()
	envoytest.Eventually(t, "a line in the access log", func() bool { return strings.HasSuffix(r.AccessLog(), "\n") })
	var line map[string]any
	if err := json.Unmarshal([]byte(r.AccessLog()), &line); err != nil {
		t.Fatalf("%v in %s", err, r.AccessLog())
	}
	return line
}

func want(t *testing.T, line, fields map[string]any) {
	t.Helper()
	for name, value := range fields {
		if line[name] != value {
			t.Errorf("%s = %v, want %v", name, line[name], value)
		}
	}
}

func TestTheAccessLogSaysWhoAndWhy(t *testing.T) {
	r := newRig(t)
	r.raw(t, "GET /v1/beliefs?secret=query", "Authorization: Bearer secret", "Cookie: secret", "X-Sallyport-Namespace: secret:1")
	line := logLine(t, r)
	want(t, line, map[string]any{
		"method": "GET", "path": "/v1/beliefs", "status": float64(http.StatusOK), "route": "backend /v1/*", "upstream": "memory",
		"namespace": identity.Namespace, "key_id": identity.KeyID, "reason": "allowed", "peer": "127.0.0.1",
	})
	took, _ := line["check_us"].(string) // Envoy prints filter state as text
	if n, err := strconv.Atoi(took); err != nil || n <= 0 {
		t.Errorf("check_us = %v", line["check_us"])
	}
	if strings.Contains(r.AccessLog(), "secret") {
		t.Errorf("a secret is in the log: %s", r.AccessLog())
	}
}

func TestTheAccessLogTellsRefusalFromOutage(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		r := newRig(t)
		no := deny(unauthenticated)
		no.DynamicMetadata = allow().GetDynamicMetadata()
		no.DynamicMetadata.Fields[gateway.MetadataReason] = structpb.NewStringValue("expired")
		r.authz.respond(no)
		r.get(t, "/v1/x")
		want(t, logLine(t, r), map[string]any{
			"status": float64(http.StatusUnauthorized), "flags": "UAEX", "details": "ext_authz_denied", "reason": "expired",
		})
	})
	t.Run("not answered", func(t *testing.T) {
		r := newRig(t)
		r.authz.server.Stop()
		r.get(t, "/v1/x")
		want(t, logLine(t, r), map[string]any{
			"status": float64(http.StatusServiceUnavailable), "flags": "UAEX", "details": "ext_authz_error",
		})
	})
}
