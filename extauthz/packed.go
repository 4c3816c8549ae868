package extauthz

import "sallyport/gateway"

// packedIdentity is an identity that is half as large, with its texts in one piece of memory: a cache keeps one for each of
// many keys, and they come from a database or a JSON object, each text by itself.
type packedIdentity struct {
	text                              string // namespace, session and key id; then tenant and agent, unless they are in the namespace
	namespace, session, keyID, tenant uint32 // where each ends: tenant where it is, all others in text
	inNamespace                       bool   // the namespace is tenant:agent, as for every sandbox
}

func pack(id gateway.Identity) (p packedIdentity) {
	text := id.Namespace + id.Session + id.KeyID
	tenant := len(id.Tenant)
	if p.inNamespace = id.Namespace == id.Tenant+":"+id.Agent; !p.inNamespace {
		tenant += len(text)
		text += id.Tenant + id.Agent
	}
	p.text = text
	p.namespace = uint32(len(id.Namespace)) // no key store keeps texts of 4 GiB
	p.session = p.namespace + uint32(len(id.Session))
	p.keyID, p.tenant = p.session+uint32(len(id.KeyID)), uint32(tenant)
	return p
}

func (p *packedIdentity) identity() (id gateway.Identity) {
	id.Namespace, id.Session, id.KeyID = p.text[:p.namespace], p.text[p.namespace:p.session], p.text[p.session:p.keyID]
	if p.inNamespace {
		id.Tenant, id.Agent = id.Namespace[:p.tenant], id.Namespace[p.tenant+1:]
	} else {
		id.Tenant, id.Agent = p.text[p.keyID:p.tenant], p.text[p.tenant:]
	}
	return id
}
