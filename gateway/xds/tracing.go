package xds

import (
	"fmt"
	"strconv"
	"strings"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tagsv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sallyport/gateway"
)

// Percent is a share of requests, from 0 to 100; in YAML and text with its sign: 1%.
type Percent float64

// UnmarshalText reads "1%".
func (p *Percent) UnmarshalText(text []byte) error {
	number, ok := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return fmt.Errorf("%q is no share: write a number and %%, such as 1%%", text)
	}
	*p = Percent(v)
	return nil
}

// MarshalText writes "1%".
func (p Percent) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(p), 'g', -1, 64) + "%"), nil
}

func (t Tracing) check() error {
	if err := t.Upstream.check(); err != nil {
		return err
	}
	if !(t.Sample > 0 && t.Sample <= 100) {
		return fmt.Errorf("sample is %g%%: use more than 0%%, up to 100%%, or leave tracing out", float64(t.Sample))
	}
	return nil
}

// hidden takes the place of a tag that Envoy fills with the caller's words. An empty one would leave Envoy's.
const hidden = "-"

// manager samples requests and sends Envoy's spans of them. Who stands behind (the doors, the backend) is told the decision
// in traceparent. No span has a word of the caller's in it: not the path, whose query may hold a token.
func (t *Tracing) manager(service string) *hcmv3.HttpConnectionManager_Tracing {
	if t == nil {
		return nil
	}
	return &hcmv3.HttpConnectionManager_Tracing{
		RandomSampling: &typev3.Percent{Value: float64(t.Sample)},
		ClientSampling: &typev3.Percent{Value: 0}, // unset, x-client-trace-id makes any caller's request a traced one
		// Envoy is a hop of its own: the backend's span is the child of the span of the request to it.
		SpawnUpstreamSpan: wrapperspb.Bool(true),
		Operation:         "%ROUTE_NAME%", // unset, it is the Host header
		UpstreamOperation: "%ROUTE_NAME% upstream",
		MaxPathTagLength:  wrapperspb.UInt32(0),
		CustomTags: []*tagsv3.CustomTag{
			tag("http.url", hidden), // Host and, but for MaxPathTagLength, the path with its query
			tag("user_agent", hidden),
			tag("http.route", "%ROUTE_NAME%"),
			tag("sallyport."+gateway.MetadataReason, decision(gateway.MetadataReason)),
			tag("sallyport."+gateway.MetadataNamespace, decision(gateway.MetadataNamespace)),
			tag("sallyport."+gateway.MetadataKeyID, decision(gateway.MetadataKeyID)),
		},
		Provider: &tracev3.Tracing_Http{
			Name: "envoy.tracers.opentelemetry",
			ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: packed(&tracev3.OpenTelemetryConfig{
				ServiceName: service,
				GrpcService: &corev3.GrpcService{
					TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: clusterCollector}},
					Timeout:         durationpb.New(connectTimeout),
				},
			})},
		},
	}
}

func tag(name, value string) *tagsv3.CustomTag {
	return &tagsv3.CustomTag{Tag: name, Type: &tagsv3.CustomTag_Value{Value: value}}
}

// begin makes every trace begin here: a caller's traceparent would say what is traced, in the place of Sample, and what is
// in tracestate would go to the collector.
func (t *Tracing) begin() []*rulesv3.HeaderMutation {
	if t == nil || t.Join {
		return nil
	}
	return []*rulesv3.HeaderMutation{remove("traceparent"), remove("tracestate")}
}
