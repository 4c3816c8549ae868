package xds

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"sallyport/gateway"
)

const accessLogNone = "none"

// accessLog writes one JSON line for each request.
func accessLog(path string) []*accesslogv3.AccessLog {
	var name string
	var config proto.Message
	switch path {
	case accessLogNone:
		return nil
	case "/dev/stdout": // by descriptor: one that is a socket cannot be opened by this name
		name = "envoy.access_loggers.stdout"
		config = &streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: logFormat()}}
	case "/dev/stderr":
		name = "envoy.access_loggers.stderr"
		config = &streamv3.StderrAccessLog{AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: logFormat()}}
	default:
		name = "envoy.access_loggers.file"
		config = &filev3.FileAccessLog{Path: path, AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: logFormat()}}
	}
	return []*accesslogv3.AccessLog{{
		Name:       name,
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed(config)},
	}}
}

// logFormat leaves out what may hold a secret: Authorization, every other request header but the request's id, and the
// query (PATH with NQ is without it).
func logFormat() *corev3.SubstitutionFormatString {
	fields := map[string]*structpb.Value{}
	for name, operator := range map[string]string{
		"time":           "%START_TIME%",
		"method":         "%REQUEST_HEADER(:METHOD)%",
		"path":           "%PATH(NQ:PATH)%",
		"protocol":       "%PROTOCOL%",
		"route":          "%ROUTE_NAME%",
		"status":         "%RESPONSE_CODE%",
		"flags":          "%RESPONSE_FLAGS%",        // UAEX: the inner door refused, or could not be asked
		"details":        "%RESPONSE_CODE_DETAILS%", // ext_authz_denied or ext_authz_error tell which
		"duration_ms":    "%DURATION%",
		"check_us":       "%FILTER_STATE(" + filterAuthz + ":FIELD:latency_us)%", // microseconds that the door took
		"bytes_received": "%BYTES_RECEIVED%",
		"bytes_sent":     "%BYTES_SENT%",
		"peer":           "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", // the client's address, past the trusted hops
		"upstream":       "%UPSTREAM_CLUSTER%",
		"request_id":     "%REQUEST_HEADER(X-REQUEST-ID)%",
		"namespace":      decision(gateway.MetadataNamespace),
		"tenant":         decision(gateway.MetadataTenant),
		"agent":          decision(gateway.MetadataAgent),
		"key_id":         decision(gateway.MetadataKeyID),
		"reason":         decision(gateway.MetadataReason),
	} {
		fields[name] = structpb.NewStringValue(operator)
	}
	return &corev3.SubstitutionFormatString{
		Format:          &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}},
		OmitEmptyValues: true, // no "-" or null for what a request does not have
	}
}

// decision reads a field of what the authorization server said about its decision.
func decision(field string) string {
	return "%DYNAMIC_METADATA(" + filterAuthz + ":" + field + ")%"
}
