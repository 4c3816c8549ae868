package extauthz

import (
	"reflect"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/keystore"
)

func TestAnEntrySaysWhatTheStoreSaid(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	owner := gateway.Identity{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-x7k2p", KeyID: "00ff"}
	var e entry // of one key, as it is read again and again
	for _, st := range []Status{
		{State: keystore.State{Kind: keystore.Signed, ExpiresAt: at}, Identity: owner},
		{State: keystore.State{Kind: keystore.Signed, ExpiresAt: at, Revoked: true}, RevokedAt: at.Add(time.Microsecond), Identity: owner},
		{State: keystore.State{Kind: keystore.Static, SecretHash: []byte("hash")}, Identity: gateway.Identity{Namespace: "team", KeyID: "00ff"}},
		{State: keystore.State{Kind: keystore.Static, ExpiresAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, Identity: owner},
		{State: keystore.State{Kind: keystore.Admin, ExpiresAt: time.Unix(0, 0).UTC(), Revoked: true}, RevokedAt: time.Unix(0, 0).UTC()},
		{State: keystore.State{ExpiresAt: time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)}},
	} {
		e.set(&st, 0)
		if got := e.status(); !reflect.DeepEqual(got, st) {
			t.Errorf("got %+v, want %+v", got, st)
		}
	}
}
