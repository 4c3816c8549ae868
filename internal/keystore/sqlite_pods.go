package keystore

import (
	"context"
	"encoding/json"
	"fmt"

	"sallyport/internal/key"
)

// live is the condition for keys of pods that still open a door; the index keys_by_pod has it in part.
const live = "kind = 'signed' AND revoked_at IS NULL AND expires_at > ?"

// stillGood is the time at or before which a key must have expired to open no door any more.
func (s *sqliteStore) stillGood() int64 { return s.now().Add(-key.Leeway).UnixMicro() }

func (s *sqliteStore) PodKeys(ctx context.Context, podNamespace, pod string) ([]Record, error) {
	const order = " ORDER BY created_at, id"
	if pod == "" {
		return s.list(ctx, "WHERE pod_namespace = ? AND "+live+order, podNamespace, s.stillGood())
	}
	return s.list(ctx, "WHERE pod_namespace = ? AND session = ? AND "+live+order, podNamespace, pod, s.stillGood())
}

func (s *sqliteStore) PodNamespaces(ctx context.Context) ([]string, error) {
	found, err := s.db.Read.QueryContext(ctx,
		"SELECT DISTINCT pod_namespace FROM keys WHERE pod_namespace <> '' AND "+live+" ORDER BY pod_namespace", s.stillGood())
	out, err := scanAll(scanText, found, err)
	if err != nil {
		return nil, fmt.Errorf("list namespaces of keys: %w", err)
	}
	return out, nil
}

// marshalRegime gives an empty text for one of which nothing is known.
func marshalRegime(r Regime) (string, error) {
	if !r.Known() {
		return "", nil
	}
	text, err := json.Marshal(r)
	return string(text), err
}

func unmarshalRegime(text string) (r Regime, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}
