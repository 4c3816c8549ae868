package checkserver

import (
	"fmt"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// encodeDenied refuses the request with the words of the denial.
func encodeDenied(d extauthz.Decision) ([]byte, error) {
	headers := append(d.Denial.Headers(), gateway.HeaderValue{Name: "content-type", Value: "application/json"})
	wire, err := proto.Marshal(&authv3.CheckResponse{
		Status: &rpcstatus.Status{Code: int32(statusCode(d.Denial.Status))},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(d.Denial.Status)},
			Headers: options(headers),
			Body:    string(d.Denial.Body()),
		}},
		DynamicMetadata: metadata(d),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the CheckResponse: %w", err)
	}
	return wire, nil
}

// options says of each header that it overwrites; see appendHeader.
func options(headers []gateway.HeaderValue) []*corev3.HeaderValueOption {
	out := make([]*corev3.HeaderValueOption, 0, len(headers))
	for _, h := range headers {
		out = append(out, &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: h.Name, Value: h.Value}, // Envoy does not read raw_value here
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return out
}

// statusCode is for logs and Envoy's counters: the HTTP status in the denial is what the client sees.
func statusCode(httpStatus int) codes.Code {
	switch httpStatus {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	default:
		return codes.PermissionDenied
	}
}

func metadata(d extauthz.Decision) *structpb.Struct {
	fields := map[string]*structpb.Value{}
	for _, f := range metadataOf(d) {
		if f.Value != "" {
			fields[f.Name] = structpb.NewStringValue(f.Value)
		}
	}
	return &structpb.Struct{Fields: fields}
}
