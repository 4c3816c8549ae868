package httpapi

import (
	"net/http"
	"time"

	"sallyport/exchange"
	"sallyport/gateway"
)

func (h *Handler) mint(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token string `json:"token"`
	}
	if err := readJSON(r, &body, required); err != nil {
		return err
	}
	m, err := h.exchange.Mint(r.Context(), body.Token)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, mintedJSON(m))
}

func (h *Handler) renew(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token string `json:"token"`
	}
	if err := readJSON(r, &body, optional); err != nil {
		return err
	}
	m, err := h.exchange.Renew(r.Context(), r.Header.Values("Authorization"), body.Token)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, mintedJSON(m))
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	records, err := h.exchange.ListKeys(r.Context(), r.Header.Values("Authorization"))
	if err != nil {
		return err
	}
	out := struct {
		Keys []record `json:"keys"`
	}{Keys: recordsJSON(records)}
	return writeJSON(w, http.StatusOK, out)
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	m, err := h.exchange.CreateKey(r.Context(), r.Header.Values("Authorization"), func() (exchange.NewKey, error) { return readNewKey(r) })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, mintedJSON(m))
}

func readNewKey(r *http.Request) (exchange.NewKey, error) {
	var body struct {
		Namespace string `json:"namespace"`
		Admin     bool   `json:"admin"`
		Agent     string `json:"agent"`
		Session   string `json:"session"`
		Note      string `json:"note"`
		ExpiresIn string `json:"expires_in"`
	}
	if err := readJSON(r, &body, required); err != nil {
		return exchange.NewKey{}, err
	}
	n := exchange.NewKey{Namespace: body.Namespace, Admin: body.Admin, Agent: body.Agent, Session: body.Session, Note: body.Note}
	if body.ExpiresIn != "" {
		d, err := time.ParseDuration(body.ExpiresIn)
		if err != nil {
			return exchange.NewKey{}, invalid(http.StatusBadRequest, "expires_in is not a duration: write it as \"24h\" or \"90m\"")
		}
		n.ExpiresIn = d
	}
	return n, nil
}

func (h *Handler) whoami(w http.ResponseWriter, r *http.Request) error {
	k, err := h.exchange.WhoAmI(r.Context(), r.Header.Values("Authorization"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, recordJSON(k))
}

func (h *Handler) jwks(w http.ResponseWriter, r *http.Request) error {
	set, err := h.exchange.JWKS(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "max-age=30")
	_, err = w.Write(set)
	return ignoreGone(err)
}

func (h *Handler) healthz(w http.ResponseWriter, r *http.Request) error {
	if err := h.ready(r.Context()); err != nil {
		return &gateway.Error{
			Status: http.StatusServiceUnavailable, Code: gateway.CodeUnavailable, Reason: "not_ready",
			Message: "the exchange is not ready: its log says why", RetryAfter: time.Second, Cause: err,
		}
	}
	_, err := w.Write([]byte("ok\n"))
	return ignoreGone(err)
}

// ignoreGone drops the error of writing to a client that hung up: nobody is left to be told.
func ignoreGone(error) error { return nil }
