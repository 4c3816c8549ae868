package extauthz

import "sallyport/gateway"

// compact returns the same identity, with its texts in one piece of memory: a cache keeps one for each of many keys, and they
// come from a database or a JSON object, each text by itself.
func compact(id gateway.Identity) gateway.Identity {
	text := id.Namespace + id.Session + id.KeyID
	cut := func(s string) string {
		s, text = text[:len(s)], text[len(s):]
		return s
	}
	out := gateway.Identity{Namespace: cut(id.Namespace), Tenant: id.Tenant, Agent: id.Agent, Session: cut(id.Session), KeyID: cut(id.KeyID)}
	if tenant := len(id.Tenant); out.Namespace == id.Tenant+":"+id.Agent { // as it is for every sandbox
		out.Tenant, out.Agent = out.Namespace[:tenant], out.Namespace[tenant+1:]
	}
	return out
}
