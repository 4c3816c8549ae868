package main

import (
	_ "embed"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"sallyport/gateway/xds"
)

// checkJSON is what an Envoy with our configuration sent when it was asked for askedPath. A test says whether it still would.
//
//go:embed check.json
var checkJSON []byte

const (
	askedPath      = "/v1/beliefs?limit=10"
	keyPlaceholder = "Bearer placeholder" // in place of a key
)

// theGateway is Envoy's configuration in the benchmarks: the one that ships, without an access log.
func theGateway(authz, backend string) xds.Gateway {
	return xds.Gateway{
		AccessLog: "none",
		Backend:   xds.Backend{Upstream: xds.Upstream{Endpoint: xds.Endpoint(backend)}, Paths: []xds.Path{{Prefix: "/v1/"}}},
		Authz: xds.Authz{
			Upstream: xds.Upstream{Endpoint: xds.Endpoint(authz)},
			Timeout:  5 * time.Second, // a slow answer is to be counted, not cut off
		},
	}
}

// recorded returns the recorded check.
func recorded() (*authv3.CheckRequest, error) {
	var check authv3.CheckRequest
	if err := protojson.Unmarshal(checkJSON, &check); err != nil {
		return nil, fmt.Errorf("read the recorded check: %w", err)
	}
	return &check, nil
}

// encodeChecks returns a check for each key, as bytes. Everything but the key and the id of the request is as recorded, and
// more headers come after those.
func encodeChecks(keys []string, more int) ([][]byte, error) {
	check, err := recorded()
	if err != nil {
		return nil, err
	}
	http := check.GetAttributes().GetRequest().GetHttp()
	for i := range more {
		http.HeaderMap.Headers = append(http.HeaderMap.Headers, &corev3.HeaderValue{
			Key: fmt.Sprintf("x-some-header-%d", i), RawValue: []byte("a value of some thirty characters"),
		})
	}
	out := make([][]byte, len(keys))
	for i, k := range keys {
		present(check, k, fmt.Sprintf("1b6d4e0c-52a7-4f39-9c81-%012x", i))
		if out[i], err = proto.Marshal(check); err != nil {
			return nil, fmt.Errorf("encode a check: %w", err)
		}
	}
	return out, nil
}

// present puts a key into a check; an empty one takes the header out.
func present(check *authv3.CheckRequest, key, requestID string) {
	http := check.GetAttributes().GetRequest().GetHttp()
	headers := http.GetHeaderMap().GetHeaders()
	kept := headers[:0]
	for _, h := range headers {
		switch h.GetKey() {
		case "authorization":
			if key == "" {
				continue
			}
			h.RawValue = []byte("Bearer " + key)
		case "x-request-id":
			h.RawValue = []byte(requestID)
		}
		kept = append(kept, h)
	}
	http.HeaderMap.Headers = kept
}
