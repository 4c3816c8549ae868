package xds_test

import (
	"slices"
	"testing"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"

	"sallyport/gateway/xds"
)

func TestTracingIsOffUnlessItIsAskedFor(t *testing.T) {
	if got := connectionManager(t, local()).GetTracing(); got != nil {
		t.Errorf("tracing = %v", got)
	}
	clusters, err := xds.Clusters(local())
	if err != nil || len(clusters) != 2 {
		t.Errorf("%d clusters, %v", len(clusters), err)
	}
}

func TestTheGatewaySaysWhatIsTraced(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		sample     float64
		removes    []string
	}{
		{"one in a hundred, unless told otherwise", "{endpoint: \"c:4317\"}", 1, []string{"traceparent", "tracestate"}},
		{"as many as are asked for", "{endpoint: \"c:4317\", sample: 0.1%}", 0.1, []string{"traceparent", "tracestate"}},
		{"callers, if they are trusted to", "{endpoint: \"c:4317\", sample: 100%, join: true}", 100, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := xds.Read([]byte(minimal + "tracing: " + tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			manager := connectionManager(t, g)
			tracing := manager.GetTracing()
			if tracing.GetRandomSampling().GetValue() != tt.sample || tracing.GetClientSampling() == nil || tracing.GetClientSampling().GetValue() != 0 {
				t.Errorf("tracing = %v", tracing)
			}
			if got := removed(t, manager); !slices.Equal(got, tt.removes) {
				t.Errorf("removes %v of callers, want %v", got, tt.removes)
			}
		})
	}
}

// removed lists the headers that are taken away by their whole names before anything else happens.
func removed(t *testing.T, manager *hcmv3.HttpConnectionManager) (names []string) {
	t.Helper()
	var early earlyv3.HeaderMutation
	if err := manager.GetEarlyHeaderMutationExtensions()[0].GetTypedConfig().UnmarshalTo(&early); err != nil {
		t.Fatal(err)
	}
	for _, m := range early.GetMutations() {
		if m.GetRemove() != "" {
			names = append(names, m.GetRemove())
		}
	}
	return names
}
