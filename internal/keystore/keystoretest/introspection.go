package keystoretest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// runIntrospection holds a store to telling a door what it would tell whoever reads the whole key.
func runIntrospection(t *testing.T, prepare Factory) {
	ctx := context.Background()
	static := keystore.Record{ID: "id", Kind: keystore.Static, Namespace: "n", Note: "CI's key", SecretHash: key.HashSecret("x"), CreatedAt: start}
	bound := static
	bound.Tenant, bound.Agent, bound.Session, bound.ExpiresAt = "t", "a", "s", start.Add(time.Second)
	strange := signed("ключ")
	strange.Namespace, strange.Session = "a:b:c\t", "日本\u00a0"
	for name, r := range map[string]keystore.Record{
		"a pod's":                      signed("id"),
		"a static key's":               static,
		"a static key's for one agent": bound,
		"an admin key's":               {ID: "id", Kind: keystore.Admin, SecretHash: key.HashSecret("y"), CreatedAt: start},
		"one with unusual letters":     strange,
	} {
		t.Run("introspecting a key says what reading it says: "+name, func(t *testing.T) {
			open := prepare(t)
			writer, door := open(func() time.Time { return start }), open(func() time.Time { return start })
			agree := func() {
				t.Helper()
				whole, err := writer.Key(ctx, r.ID)
				must(t, err)
				got, err := door.Introspect(ctx, r.ID)
				must(t, err)
				if want := introspectionOf(whole); !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
			must(t, writer.AddKey(ctx, signed("other")))
			must(t, writer.AddKey(ctx, r))
			agree()
			must(t, writer.Revoke(ctx, r.ID, "it leaked", start.Add(time.Minute)))
			agree()
		})
	}
}

func introspectionOf(r keystore.Record) keystore.Introspection {
	return keystore.Introspection{
		State: r.State(), RevokedAt: r.RevokedAt,
		ID: r.ID, Namespace: r.Namespace, Tenant: r.Tenant, Agent: r.Agent, Session: r.Session,
	}
}
