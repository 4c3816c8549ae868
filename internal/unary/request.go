package unary

import (
	"context"
	"net/http"
	"strings"
	"time"

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

// request finds who answers a call.
func (s *Server) request(ctx context.Context, f *fields) request {
	r := request{ctx: ctx, timeout: f.timeout, declared: f.declared, length: f.length}
	if f.tooLarge() {
		r.refusal = status.Errorf(codes.ResourceExhausted, "the headers are too large: they may have %d bytes", maxHeaderBytes)
		return r
	}
	if f.metadata != nil {
		r.ctx = metadata.NewIncomingContext(ctx, f.metadata)
	}
	r.handler, r.refusal = s.find(f)
	return r
}

func (s *Server) find(f *fields) (Handler, error) {
	switch h, ok := s.handlers[f.path]; {
	case !isGRPC(f.contentType):
		return nil, &plainError{http.StatusUnsupportedMediaType, "This address serves gRPC: use a gRPC client.\n"}
	case f.method != http.MethodPost:
		return nil, &plainError{http.StatusMethodNotAllowed, "This address serves gRPC, whose calls are POST requests.\n"}
	case !ok:
		return nil, status.Error(codes.Unimplemented, "this method is not served here")
	default:
		return h, nil
	}
}

func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// plainError answers what is no gRPC call, for a person who tries the address with another client.
type plainError struct {
	status int
	text   string
}

// Error implements error.
func (e *plainError) Error() string { return e.text }
