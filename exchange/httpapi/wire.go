package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sallyport/exchange"
	"sallyport/gateway"
	"sallyport/internal/keystore"
)

// maxBody is far above any token: a projected one has about 1.5 KiB.
const maxBody = 16 << 10

// presence says whether a body may be empty.
type presence bool

const (
	required presence = true
	optional presence = false
)

// readJSON reads one JSON object with known members only.
func readJSON(r *http.Request, into any, p presence) error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return invalid(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody))
	case err != nil:
		return invalid(http.StatusBadRequest, "the body ended before its time")
	case len(bytes.TrimSpace(data)) == 0 && p == optional:
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid(http.StatusBadRequest, "the body is not what this call takes: "+describe(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid(http.StatusBadRequest, "the body holds more than one JSON object")
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return invalid(http.StatusBadRequest, "the body is null: send a JSON object")
	}
	return nil
}

// describe words a decoding error without Go's types and without the values that were sent, which may be secrets.
func describe(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return "send a JSON object"
		}
		return fmt.Sprintf("member %q has the wrong type", wrong.Field)
	}
	const unknown = "json: unknown field "
	if name, ok := bytes.CutPrefix([]byte(err.Error()), []byte(unknown)); ok {
		return fmt.Sprintf("member %s is not known", name)
	}
	return "it is not valid JSON"
}

func invalid(status int, message string) error {
	return &gateway.Error{Status: status, Code: gateway.CodeInvalidArgument, Reason: "invalid_argument", Message: message}
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // answers carry keys
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return ignoreGone(err)
}

// record is a key on the wire (Memory API, section 2), with tenant added.
type record struct {
	ID        string     `json:"id"`
	Namespace string     `json:"namespace"`
	Tenant    string     `json:"tenant,omitempty"`
	Admin     bool       `json:"admin"`
	Revoked   bool       `json:"revoked"`
	Reason    string     `json:"revoked_reason,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	Agent     string     `json:"agent,omitempty"`
	Session   string     `json:"session,omitempty"`
	Note      string     `json:"note,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	TTL       string     `json:"ttl,omitempty"`
	Renewable bool       `json:"renewable,omitempty"`

	Sandbox *keystore.Regime `json:"sandbox,omitempty"`
}

type minted struct {
	record
	Key string `json:"key"`
}

func recordJSON(r keystore.Record) record {
	out := record{
		ID: r.ID, Namespace: r.Namespace, Tenant: r.Tenant, Admin: r.Kind == keystore.Admin,
		Revoked: r.Revoked(), Reason: r.RevokedFor, CreatedAt: r.CreatedAt, Agent: r.Agent, Session: r.Session, Note: r.Note,
	}
	if !r.ExpiresAt.IsZero() {
		out.ExpiresAt = &r.ExpiresAt
		out.TTL = r.ExpiresAt.Sub(r.CreatedAt).String()
		out.Renewable = r.Kind == keystore.Signed
	}
	if r.Regime.Known() {
		out.Sandbox = &r.Regime
	}
	return out
}

// recordsJSON gives an empty list for none, rather than null.
func recordsJSON(list []keystore.Record) []record {
	out := make([]record, 0, len(list))
	for _, r := range list {
		out = append(out, recordJSON(r))
	}
	return out
}

func mintedJSON(m exchange.Minted) minted { return minted{record: recordJSON(m.Record), Key: m.Key} }
