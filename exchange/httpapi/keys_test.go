package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/exchange/devcluster"
	"sallyport/exchange/sandbox"
	"sallyport/internal/key"
)

func TestRenewal(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	token := r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"})
	first := r.mint(token)
	old := first.text("key")

	t.Run("wants the pod's token", func(t *testing.T) {
		for _, body := range []string{"", "{}", `{"token":""}`} {
			a := r.send(http.MethodPost, "/v1/keys/renew", old, body)
			if a.status != 409 || a.code() != "renew_with_token" {
				t.Errorf("%q: %d %v", body, a.status, a.body)
			}
		}
	})
	t.Run("gives a new key, and the old one lives to its own end", func(t *testing.T) {
		a := r.renew(old, token)
		if a.status != 200 || a.text("key") == old || a.text("id") == first.text("id") || a.text("namespace") != "agents:run-1" {
			t.Fatalf("%d %v", a.status, a.body)
		}
		for _, text := range []string{old, a.text("key")} {
			if _, err := r.verifier.Verify(t.Context(), text); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("refuses another pod's token", func(t *testing.T) {
		for name, spec := range map[string]devcluster.PodSpec{
			"of another claim": {Name: "b", Claim: "run-2"},
			"of a plain pod":   {Name: "c"},
		} {
			if a := r.renew(old, r.token(spec)); a.status != 403 || a.code() != "namespace_mismatch" {
				t.Errorf("%s: %d %v", name, a.status, a.body)
			}
		}
	})
	t.Run("refuses a token that gets no key", func(t *testing.T) {
		if a := r.renew(old, r.token(devcluster.PodSpec{Name: "w", WarmPool: "p"})); a.status != 401 {
			t.Errorf("%d %v", a.status, a.body)
		}
	})
	t.Run("refuses what is no good key", func(t *testing.T) {
		for name, bearer := range map[string]string{"none": "", "garbage": "x", "the token": token} {
			if a := r.renew(bearer, token); a.status != 401 || a.code() != "unauthenticated" {
				t.Errorf("%s: %d %v", name, a.status, a.body)
			}
		}
		revoked := r.mint(token)
		r.send(http.MethodDelete, "/v1/keys/"+revoked.text("id"), r.admin, "")
		if a := r.renew(revoked.text("key"), token); a.status != 401 {
			t.Errorf("revoked: %d %v", a.status, a.body)
		}
		expired := r.mint(token)
		r.offset.Store(int64(15*time.Minute + key.Leeway + 2*time.Second))
		defer r.offset.Store(0)
		if a := r.renew(expired.text("key"), token); a.status != 401 {
			t.Errorf("expired: %d %v", a.status, a.body)
		}
	})
	t.Run("does not renew what an admin made", func(t *testing.T) {
		made := r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"agents:run-1","expires_in":"1h"}`)
		if a := r.renew(made.text("key"), token); a.status != 409 || a.code() != "renew_with_token" {
			t.Errorf("%d %v", a.status, a.body)
		}
	})
}

func TestTheKeyRenewedIsThePodsThatIsThereNow(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	old := r.mint(r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"}))
	check(t, r.cluster.DeletePod(t.Context(), "agents", "a"))
	again := r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"})
	if a := r.renew(old.text("key"), again); a.status != 403 || a.code() != "namespace_mismatch" {
		t.Errorf("a pod made again under the name renewed the key of the one before: %d %v", a.status, a.body)
	}
}

func TestAdminsManageKeys(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	made := r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"team:x","agent":"x","session":"s","note":"n","expires_in":"20m"}`)
	if made.status != 201 || !strings.HasPrefix(made.text("key"), "rcl_"+made.text("id")+"_") || made.text("ttl") != "20m0s" || made.text("expires_at") == "" {
		t.Fatalf("%d %v", made.status, made.body)
	}
	forever := r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"team:y"}`)
	if forever.status != 201 || forever.body["expires_at"] != nil || forever.body["ttl"] != nil {
		t.Fatalf("%d %v", forever.status, forever.body)
	}
	record, err := r.store.Key(t.Context(), made.text("id"))
	if err != nil || string(record.SecretHash) != string(key.HashSecret(made.text("key"))) {
		t.Errorf("stored: %+v, %v", record, err)
	}

	list := r.send(http.MethodGet, "/v1/keys", r.admin, "")
	text, err := json.Marshal(list.body)
	check(t, err)
	if list.status != 200 || len(list.body["keys"].([]any)) != 3 || strings.Contains(string(text), made.text("key")) || strings.Contains(string(text), `"key":`) {
		t.Errorf("%d %s", list.status, text)
	}

	for range 2 { // the second time it is revoked already
		if a := r.send(http.MethodDelete, "/v1/keys/"+made.text("id"), r.admin, ""); a.status != 204 {
			t.Errorf("revoke: %d %v", a.status, a.body)
		}
	}
	if a := r.send(http.MethodDelete, "/v1/keys/nope", r.admin, ""); a.status != 404 || a.code() != "not_found" {
		t.Errorf("%d %v", a.status, a.body)
	}
	if record, err = r.store.Key(t.Context(), made.text("id")); err != nil || !record.Revoked() || record.RevokedFor == "" {
		t.Errorf("stored: %+v, %v", record, err)
	}
	if strings.Contains(r.log.String(), made.text("key")) || strings.Contains(r.log.String(), r.admin) {
		t.Error("a key is in the log")
	}
}

func TestAnAdminKeyMadeByAnAdminKeyIsOne(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	second := r.send(http.MethodPost, "/v1/keys", r.admin, `{"admin":true,"note":"on call"}`)
	if second.status != 201 || second.body["admin"] != true || second.text("namespace") != "" {
		t.Fatalf("%d %v", second.status, second.body)
	}
	if a := r.send(http.MethodGet, "/v1/keys", second.text("key"), ""); a.status != 200 {
		t.Errorf("%d %v", a.status, a.body)
	}
	r.send(http.MethodDelete, "/v1/keys/"+second.text("id"), r.admin, "")
	if a := r.send(http.MethodGet, "/v1/keys", second.text("key"), ""); a.status != 401 {
		t.Errorf("revoked: %d %v", a.status, a.body)
	}
}

func TestOthersDoNotManageKeys(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	pods := r.mint(r.token(devcluster.PodSpec{Name: "a"})).text("key")
	team := r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"team"}`).text("key")
	wrong := key.NewSecret().Text
	for _, call := range []struct{ method, path, body string }{
		{"GET", "/v1/keys", ""},
		{"POST", "/v1/keys", `{"namespace":"mine"}`},
		{"POST", "/v1/keys", `not even JSON`},
		{"DELETE", "/v1/keys/" + r.admin[4:20], ""},
		{"POST", "/v1/keys/revoke", `{"all":true}`},
		{"POST", "/v1/keys/revoke", `not even JSON`},
	} {
		for name, c := range map[string]struct {
			bearer string
			status int
			code   string
		}{
			"a pod's key": {pods, 403, "forbidden"}, "a team's key": {team, 403, "forbidden"},
			"nothing": {"", 401, "unauthenticated"}, "garbage": {"x", 401, "unauthenticated"}, "another secret": {wrong, 401, "unauthenticated"},
		} {
			if a := r.send(call.method, call.path, c.bearer, call.body); a.status != c.status || a.code() != c.code {
				t.Errorf("%s %s with %s: %d %v", call.method, call.path, name, a.status, a.body)
			}
		}
	}
	if a := r.send("GET", "/v1/keys", r.admin, ""); a.status != 200 || len(a.body["keys"].([]any)) != 3 {
		t.Errorf("something was changed: %v", a.body)
	}
}

func TestWhatAnAdminMayNotAskFor(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	for _, body := range []string{
		``, `{}`, `{"namespace":""}`, `{"namespace":"A b"}`, `{"namespace":"a/b"}`, `{"namespace":":b"}`, `{"namespace":"` + strings.Repeat("a", 129) + `"}`,
		`{"namespace":"t","admin":true}`, `{"namespace":"t","ttl":"5m"}`, `{"namespace":"t","expires_in":900}`, `{"namespace":"t","expires_in":"-1s"}`,
		`{"namespace":"t","expires_in":"zz"}`, `{"namespace":1}`, `nojson`, `[]`, `null`, `{"namespace":"t","agent":"a\nb"}`, `{"namespace":"t","session":"é"}`,
	} {
		if a := r.send(http.MethodPost, "/v1/keys", r.admin, body); a.status != 400 || a.code() != "invalid_argument" {
			t.Errorf("%s: %d %v", body, a.status, a.body)
		}
	}
	for _, never := range []string{`"0"`, `"0s"`, `""`} {
		if a := r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"t","expires_in":`+never+`}`); a.status != 201 || a.body["expires_at"] != nil {
			t.Errorf("expires_in %s: %d %v", never, a.status, a.body)
		}
	}
}

func TestTheKeySetIsPublished(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	a := r.send(http.MethodGet, "/.well-known/jwks.json", "", "")
	keys, _ := a.body["keys"].([]any)
	if a.status != 200 || len(keys) != 1 || a.header.Get("Cache-Control") == "" {
		t.Errorf("%d %v %v", a.status, a.body, a.header)
	}
	if a := r.send(http.MethodGet, "/healthz", "", ""); a.status != 200 {
		t.Errorf("healthz = %d", a.status)
	}
}

func TestWhoAmITellsTheHolderOfAKeyWhatItReachesAndWhatSurvives(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	minted := r.mint(r.token(devcluster.PodSpec{Name: "a", Claim: "run-1"}))
	a := r.send(http.MethodGet, "/v1/whoami", minted.text("key"), "")
	if a.status != 200 || a.text("namespace") != "agents:run-1" || a.text("session") != "a" || a.text("expires_at") != minted.text("expires_at") {
		t.Errorf("%d %v", a.status, a.body)
	}
	regime, _ := a.body["sandbox"].(map[string]any)
	if regime["claim"] != "run-1" || regime["started"] != sandbox.Cold || len(regime["keeps"].([]any)) != 1 {
		t.Errorf("sandbox = %v", a.body["sandbox"])
	}
	if _, shown := a.body["key"]; shown {
		t.Error("the key is shown again")
	}
	made := r.send(http.MethodPost, "/v1/keys", r.admin, `{"namespace":"team"}`)
	if a := r.send(http.MethodGet, "/v1/whoami", made.text("key"), ""); a.status != 200 || a.text("namespace") != "team" || a.body["sandbox"] != nil {
		t.Errorf("%d %v", a.status, a.body)
	}
	if a := r.send(http.MethodGet, "/v1/whoami", r.admin, ""); a.status != 200 || a.body["admin"] != true {
		t.Errorf("%d %v", a.status, a.body)
	}
	if a := r.send(http.MethodGet, "/v1/whoami", "", ""); a.status != 401 {
		t.Errorf("%d %v", a.status, a.body)
	}
}
