package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sallyport/exchange/devcluster"
	"sallyport/exchange/sandbox"
)

// revoked returns the sessions, or else the notes, of the keys that an answer says were ended; how many it says there are must be right.
func revoked(t *testing.T, a answer) []string {
	t.Helper()
	keys, ok := a.body["keys"].([]any)
	if a.status != http.StatusOK || !ok || a.body["count"] != float64(len(keys)) {
		t.Fatalf("%d %v", a.status, a.body)
	}
	notes := []string{}
	for _, k := range keys {
		one := k.(map[string]any)
		if one["revoked"] != true || one["id"] == "" {
			t.Errorf("not shown as revoked: %v", one)
		}
		if session, _ := one["session"].(string); session != "" {
			notes = append(notes, session)
		} else {
			notes = append(notes, one["note"].(string))
		}
	}
	slices.Sort(notes)
	return notes
}

func TestAnAdminRevokesManyKeysAtOnce(t *testing.T) {
	for body, want := range map[string][]string{
		`{"agent":"agents:run-1"}`:                                        {"a", "a", "for run-1"},
		`{"tenant":"agents","agent":"run-1"}`:                             {"a", "a", "for run-1"},
		`{"tenant":"agents","agent":"agents:run-1"}`:                      {"a", "a", "for run-1"},
		`{"session":"b"}`:                                                 {"b"},
		`{"agent":"agents:run-1","session":"a"}`:                          {"a", "a"},
		`{"tenant":"agents"}`:                                             {"a", "a", "b", "for run-1"},
		`{"service_account":"agents/ci"}`:                                 {"b"},
		`{"service_account":"agents/ci","session":"a","reason":"narrow"}`: {},
		`{"tenant":"nobody"}`:                                             {},
		`{"all":true,"reason":"the laptop was stolen"}`:                   {"a", "a", "b", "for run-1", "for the team"},
	} {
		t.Run(body, func(t *testing.T) {
			r := newRig(t, sandbox.Options{})
			token := r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"})
			r.mint(token)
			r.mint(token)
			r.mint(r.token(devcluster.PodSpec{Name: "b", ServiceAccount: "ci"}))
			r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"agents:run-1","note":"for run-1"}`)
			r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"team","note":"for the team"}`)
			if got := revoked(t, r.send(http.MethodPost, "/v1/keys/revoke", r.admin, body)); !slices.Equal(got, want) {
				t.Errorf("ended %q, want %q", got, want)
			}
			if got := revoked(t, r.send(http.MethodPost, "/v1/keys/revoke", r.admin, body)); len(got) != 0 {
				t.Errorf("ended again: %q", got)
			}
			if a := r.send(http.MethodGet, "/v1/keys", r.admin, ""); a.status != http.StatusOK {
				t.Errorf("the admin is locked out: %d %v", a.status, a.body)
			}
		})
	}
}

func TestARevocationOfManyKeysIsLoggedOnceAndKeptWithEachKey(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	token := r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"})
	first, second := r.mint(token), r.mint(token)
	r.log.Reset()
	r.send(http.MethodPost, "/v1/keys/revoke", r.admin, `{"agent":"agents:run-1","reason":"it ran away"}`)
	adminID := r.admin[4:20]
	for _, minted := range []answer{first, second} {
		record, err := r.store.Key(t.Context(), minted.text("id"))
		if err != nil || record.RevokedFor != "revoked by admin key "+adminID+": it ran away" {
			t.Errorf("%+v, %v", record, err)
		}
		if a := r.send(http.MethodGet, "/v1/whoami", minted.text("key"), ""); a.status != http.StatusUnauthorized {
			t.Errorf("it is good yet: %d %v", a.status, a.body)
		}
	}
	var line map[string]any
	logged, _, _ := bytes.Cut(r.log.Bytes(), []byte("\n"))
	check(t, json.Unmarshal(logged, &line))
	for name, want := range map[string]any{
		"msg": "keys revoked", "by": "admin key " + adminID, "tenant": "agents", "agent": "run-1", "reason": "it ran away", "count": 2.0,
	} {
		if line[name] != want {
			t.Errorf("%s = %v, want %v", name, line[name], want)
		}
	}
	if strings.Contains(r.log.String(), r.admin) {
		t.Error("a key is in the log")
	}
}

func TestOneKeyIsRevokedForAReason(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	minted := r.mint(r.token(devcluster.PodSpec{Name: "a"}))
	if a := r.send(http.MethodDelete, "/v1/keys/"+minted.text("id"), r.admin, `{"reason":"it leaked"}`); a.status != http.StatusNoContent {
		t.Errorf("%d %v", a.status, a.body)
	}
	if record, err := r.store.Key(t.Context(), minted.text("id")); err != nil || !strings.HasSuffix(record.RevokedFor, ": it leaked") {
		t.Errorf("%+v, %v", record, err)
	}
}

func TestARevocationThatDoesNotSayWhatItMeansEndsNothing(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	minted := r.mint(r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"}))
	for body, says := range map[string]string{
		``:                                      "JSON",
		`{}`:                                    `"all": true`,
		`{"all":false}`:                         `"all": true`,
		`{"reason":"none"}`:                     `"all": true`,
		`{"all":true,"tenant":"agents"}`:        "leave one",
		`{"agent":"run-1"}`:                     "TENANT:AGENT",
		`{"agent":":run-1"}`:                    "TENANT:AGENT",
		`{"agent":"agents:"}`:                   "TENANT:AGENT",
		`{"agent":"agents:run-1","tenant":"b"}`: "another tenant",
		`{"service_account":"default"}`:         "NAMESPACE/NAME",
		`{"service_account":"agents/"}`:         "NAMESPACE/NAME",
		`{"tenant":"agents","agent":""}`:        "agent is empty", // as a script whose variable is not set would send it
		`{"tenant":"agents","session":null}`:    "session is empty",
		`{"tenant":["agents"]}`:                 `"tenant" has the wrong type`,
		`{"agents":"run-1"}`:                    "not known",
		`{"tenant":"agents","reason":"a\nb"}`:   "control character",
		`{"tenant":"agents","reason":"` + strings.Repeat("x", 257) + `"}`: "256",
	} {
		a := r.send(http.MethodPost, "/v1/keys/revoke", r.admin, body)
		if a.status != http.StatusBadRequest || a.code() != "invalid_argument" || !strings.Contains(a.message(), says) {
			t.Errorf("%s: %d %v, want it to say %s", body, a.status, a.body, says)
		}
	}
	if a := r.send(http.MethodGet, "/v1/keys/revoke", r.admin, ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %v", a.status, a.body)
	}
	if record, err := r.store.Key(t.Context(), minted.text("id")); err != nil || record.Revoked() {
		t.Errorf("%+v, %v", record, err)
	}
}
