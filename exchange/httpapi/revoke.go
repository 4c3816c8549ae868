package httpapi

import (
	"encoding/json"
	"net/http"

	"sallyport/exchange"
)

func (h *Handler) revoke(w http.ResponseWriter, r *http.Request) error {
	err := h.exchange.RevokeKey(r.Context(), r.Header.Values("Authorization"), r.PathValue("id"), func() (string, error) {
		var body struct {
			Reason string `json:"reason"`
		}
		err := readJSON(r, &body, optional)
		return body.Reason, err
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) revokeMany(w http.ResponseWriter, r *http.Request) error {
	ended, err := h.exchange.RevokeKeys(r.Context(), r.Header.Values("Authorization"), func() (exchange.Revocation, error) { return readRevocation(r) })
	if err != nil {
		return err
	}
	out := struct {
		Count int      `json:"count"`
		Keys  []record `json:"keys"`
	}{Count: len(ended), Keys: recordsJSON(ended)}
	return writeJSON(w, http.StatusOK, out)
}

// name is a member that names something. One that is given and names nothing, such as a script's variable that was not
// set, is refused: without it more would end than was meant to.
type name struct {
	text  string
	given bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *name) UnmarshalJSON(text []byte) error {
	n.given = true
	return json.Unmarshal(text, &n.text)
}

func readRevocation(r *http.Request) (exchange.Revocation, error) {
	var body struct {
		Agent          name   `json:"agent"`
		Session        name   `json:"session"`
		Tenant         name   `json:"tenant"`
		ServiceAccount name   `json:"service_account"`
		All            bool   `json:"all"`
		Reason         string `json:"reason"`
	}
	if err := readJSON(r, &body, required); err != nil {
		return exchange.Revocation{}, err
	}
	for member, n := range map[string]name{
		"agent": body.Agent, "session": body.Session, "tenant": body.Tenant, "service_account": body.ServiceAccount,
	} {
		if n.given && n.text == "" {
			return exchange.Revocation{}, invalid(http.StatusBadRequest, member+" is empty: name one, or leave it out")
		}
	}
	return exchange.Revocation{
		Agent: body.Agent.text, Session: body.Session.text, Tenant: body.Tenant.text, ServiceAccount: body.ServiceAccount.text,
		All: body.All, Reason: body.Reason,
	}, nil
}
