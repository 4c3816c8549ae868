package unary

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// request is what the headers of a call say.
type request struct {
	handler  Handler
	ctx      context.Context //nolint:containedctx // of the call, which has no stack of its own while it arrives
	timeout  time.Duration
	declared bool  // there is a content-length
	length   int64 // bytes of it that have not arrived
	refusal  error // nil: there is a handler
}

// read reads the headers of a call; ok is false if they are not HTTP/2's (RFC 9113, 8.2.2 and 8.3.1). That names are lower
// case and pseudo-header fields are in order is the framer's to see.
func (s *Server) read(ctx context.Context, f *http2.MetaHeadersFrame) (r request, ok bool) {
	r = request{ctx: ctx, timeout: maxWait}
	var method, path, scheme, contentType string
	var md metadata.MD
	for _, h := range f.Fields {
		switch h.Name {
		case ":method":
			method = h.Value
		case ":path":
			path = h.Value
		case ":scheme":
			scheme = h.Value
		case "content-type":
			contentType = h.Value
		case "content-length":
			n, err := strconv.ParseInt(h.Value, 10, 64)
			if err != nil || n < 0 {
				return r, false
			}
			r.declared, r.length = true, n
		case "grpc-timeout":
			r.timeout = min(timeout(h.Value), maxWait)
		case "te":
			if h.Value != "trailers" {
				return r, false
			}
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			return r, false
		default:
			if slices.Contains(s.options.Metadata, h.Name) {
				if md == nil {
					md = metadata.MD{}
				}
				md.Append(h.Name, h.Value)
			}
		}
	}
	if f.Truncated {
		r.refusal = status.Errorf(codes.ResourceExhausted, "the headers are too large: they may have %d bytes", maxHeaderBytes)
		return r, true
	}
	if method == "" || path == "" || scheme == "" {
		return r, false
	}
	if md != nil {
		r.ctx = metadata.NewIncomingContext(ctx, md)
	}
	r.handler, r.refusal = s.find(method, path, contentType)
	return r, true
}

func (s *Server) find(method, path, contentType string) (Handler, error) {
	if !isGRPC(contentType) {
		return nil, &notGRPC{http.StatusUnsupportedMediaType, "This address serves gRPC: use a gRPC client.\n"}
	}
	if method != http.MethodPost {
		return nil, &notGRPC{http.StatusMethodNotAllowed, "This address serves gRPC, whose calls are POST requests.\n"}
	}
	h, ok := s.handlers[path]
	if !ok {
		return nil, status.Error(codes.Unimplemented, "this method is not served here")
	}
	return h, nil
}

func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

var timeoutUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// timeout reads a grpc-timeout: at most eight digits and a unit. What is none counts as the longest.
func timeout(value string) time.Duration {
	const mostDigits = 8
	if len(value) < 2 || len(value) > mostDigits+1 {
		return maxWait
	}
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 32)
	unit, ok := timeoutUnits[value[len(value)-1]]
	if err != nil || !ok || time.Duration(n) > maxWait/unit {
		return maxWait
	}
	return time.Duration(n) * unit
}
