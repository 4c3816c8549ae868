package tuning

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sallyport/gateway"
)

// maxBody is far above any set of settings.
const maxBody = 4 << 10

// Handler serves GET /stats (JSON) and POST /settings, a JSON object of flags' names and values.
func (d *Door) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.Report()) // whoever asked is gone if this fails
	})
	mux.HandleFunc("POST /settings", func(w http.ResponseWriter, r *http.Request) {
		if err := d.set(w, r); err != nil {
			gateway.WriteError(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (d *Door) set(w http.ResponseWriter, r *http.Request) error {
	invalid := func(err error) error {
		return &gateway.Error{Status: http.StatusBadRequest, Code: gateway.CodeInvalidArgument, Reason: "setting", Message: err.Error()}
	}
	var body map[string]string
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil {
		return invalid(fmt.Errorf("send a JSON object of settings and their values, such as {\"ttl\":\"10s\"}"))
	}
	var s Settings
	for name, value := range body {
		if err := s.Set(name, value); err != nil {
			return invalid(err)
		}
	}
	if err := d.Apply(s, "the admin socket"); err != nil {
		return invalid(err)
	}
	return nil
}
