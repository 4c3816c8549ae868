package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"sallyport/internal/keystore"
)

// Keystore returns store with a span for each read, write and revocation of a key. address is where it is, as for
// keystore.Open.
func (t *Tracing) Keystore(store keystore.Store, address string) keystore.Store {
	if t == nil {
		return store
	}
	system := semconv.DBSystemNamePostgreSQL
	if strings.HasPrefix(address, "sqlite:") {
		system = semconv.DBSystemNameSQLite
	}
	start := func(ctx context.Context, operation string) (context.Context, trace.Span) {
		return t.tracer.Start(ctx, operation+" keys", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(system, semconv.DBOperationName(operation), semconv.DBCollectionName("keys")))
	}
	return tracedStore{Store: store, start: start}
}

type tracedStore struct {
	keystore.Store
	start func(ctx context.Context, operation string) (context.Context, trace.Span)
}

// AddKey implements keystore.Store.
func (s tracedStore) AddKey(ctx context.Context, r keystore.Record) (err error) {
	ctx, span := s.start(ctx, "INSERT")
	defer func() { end(span, err) }()
	return s.Store.AddKey(ctx, r)
}

// Key implements keystore.Store.
func (s tracedStore) Key(ctx context.Context, id string) (_ keystore.Record, err error) {
	ctx, span := s.start(ctx, "SELECT")
	defer func() { end(span, err) }()
	return s.Store.Key(ctx, id)
}

// Introspect implements keystore.Store.
func (s tracedStore) Introspect(ctx context.Context, id string) (_ keystore.Introspection, err error) {
	ctx, span := s.start(ctx, "SELECT")
	defer func() { end(span, err) }()
	return s.Store.Introspect(ctx, id)
}

// Revoke implements keystore.Store.
func (s tracedStore) Revoke(ctx context.Context, id, reason string, at time.Time) (err error) {
	ctx, span := s.start(ctx, "UPDATE")
	defer func() { end(span, err) }()
	return s.Store.Revoke(ctx, id, reason, at)
}

// RevokeMatching implements keystore.Store.
func (s tracedStore) RevokeMatching(ctx context.Context, which keystore.Selector, reason string, at time.Time) (_ []keystore.Record, err error) {
	ctx, span := s.start(ctx, "UPDATE")
	defer func() { end(span, err) }()
	return s.Store.RevokeMatching(ctx, which, reason, at)
}

// end ends a span. That there is no such key is an answer, not a failure.
func end(span trace.Span, err error) {
	if err != nil && !errors.Is(err, keystore.ErrNotFound) {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(semconv.ErrorType(err))
	}
	span.End()
}
