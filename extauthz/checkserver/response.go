package checkserver

import (
	"fmt"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"sallyport/extauthz"
	"sallyport/gateway"
)

// answer is an encoded CheckResponse. It is never changed: one may be on its way to many at once.
type answer struct{ wire mem.BufferSlice }

// answerTo encodes the answer to a decision. An allow is the same for every request of a key, unless the client sent
// forged headers that have to go: then it is encoded once and stays with the key's cache entry.
func answerTo(d extauthz.Decision, names gateway.Headers, forged []string) (*answer, error) {
	if !d.Allowed() || len(forged) > 0 || d.Memo == nil {
		return encode(write(d, names, forged))
	}
	if a, ok := d.Memo.Load().(*answer); ok {
		return a, nil
	}
	a, err := encode(write(d, names, nil))
	if err == nil {
		d.Memo.Store(a)
	}
	return a, err
}

func encode(r *authv3.CheckResponse) (*answer, error) {
	wire, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode the CheckResponse: %w", err)
	}
	return &answer{mem.BufferSlice{mem.SliceBuffer(wire)}}, nil
}

// write turns a decision into the answer to Envoy.
func write(d extauthz.Decision, names gateway.Headers, forged []string) *authv3.CheckResponse {
	out := &authv3.CheckResponse{DynamicMetadata: metadata(d)}
	if d.Allowed() {
		out.Status = &rpcstatus.Status{Code: int32(codes.OK)}
		out.HttpResponse = &authv3.CheckResponse_OkResponse{OkResponse: allowed(d, names, forged)}
		return out
	}
	out.Status = &rpcstatus.Status{Code: int32(statusCode(d.Denial.Status))}
	out.HttpResponse = &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied(d.Denial)}
	return out
}

// allowed sets the trusted headers and removes the key and whatever the client sent under the gateway's names.
func allowed(d extauthz.Decision, names gateway.Headers, forged []string) *authv3.OkHttpResponse {
	return &authv3.OkHttpResponse{
		Headers:         options(names.Values(d.Identity)),
		HeadersToRemove: extauthz.HeadersToRemove(d, names, forged),
	}
}

func denied(e *gateway.Error) *authv3.DeniedHttpResponse {
	headers := append(e.Headers(), gateway.HeaderValue{Name: "content-type", Value: "application/json"})
	return &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(e.Status)},
		Headers: options(headers),
		Body:    string(e.Body()),
	}
}

// options says of each header that it overwrites: left unset, Envoy 1.40 overwrites and later sources append (envoy#32420).
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

// metadata is what Envoy's access log shows of the decision, under envoy.filters.http.ext_authz.
func metadata(d extauthz.Decision) *structpb.Struct {
	fields := map[string]*structpb.Value{gateway.MetadataReason: structpb.NewStringValue(string(d.Reason))}
	for name, value := range map[string]string{
		gateway.MetadataNamespace: d.Identity.Namespace, gateway.MetadataTenant: d.Identity.Tenant,
		gateway.MetadataAgent: d.Identity.Agent, gateway.MetadataKeyID: d.Identity.KeyID,
	} {
		if value != "" {
			fields[name] = structpb.NewStringValue(value)
		}
	}
	return &structpb.Struct{Fields: fields}
}
