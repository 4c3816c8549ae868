package extauthz

import (
	"testing"

	"sallyport/gateway"
)

func TestAPackedIdentityIsTheSame(t *testing.T) {
	for _, id := range []gateway.Identity{
		{},
		{Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-x7k2p", KeyID: "00ff"},
		{Namespace: "shared", KeyID: "00ff"},
		{Namespace: "a:b:c", Tenant: "a", Agent: "b:c", Session: "s"},
		{Namespace: "other", Tenant: "agents", Agent: "run-1", Session: "s", KeyID: "k"},
		{Namespace: ":"},
		{Tenant: "a"},
		{Agent: "a"},
		{Session: "s"},
		{KeyID: "k"},
		{Namespace: "a:", Tenant: "a"},
		{Namespace: ":a", Agent: "a", KeyID: "k"},
		{Namespace: "ä:日本", Tenant: "ä", Agent: "日本", Session: "\x00\xff", KeyID: "k"},
	} {
		packed := pack(id)
		if got := packed.identity(); got != id {
			t.Errorf("%+v became %+v", id, got)
		}
	}
}
