package key

import (
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims is what a key says. All of it comes from the party that vouched for the pod; the caller chose none of it.
type Claims struct {
	ID             string // names the key in logs and in the key store
	Namespace      string // "<tenant>:<agent>"
	Tenant         string
	Agent          string
	Session        string // the pod's name
	PodUID         string
	ServiceAccount string
	IssuedAt       time.Time
	Expires        time.Time
}

// wire is the JWT form of Claims.
type wire struct {
	jwt.RegisteredClaims
	Namespace      string `json:"namespace"`
	Tenant         string `json:"tenant"`
	Agent          string `json:"agent"`
	Session        string `json:"session"`
	PodUID         string `json:"pod_uid"`
	ServiceAccount string `json:"service_account"`
}

func toWire(c Claims, issuer, audience string) wire {
	return wire{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    issuer,
			Subject:   c.Namespace,
			Audience:  jwt.ClaimStrings{audience},
			ID:        c.ID,
			IssuedAt:  jwt.NewNumericDate(c.IssuedAt),
			NotBefore: jwt.NewNumericDate(c.IssuedAt),
			ExpiresAt: jwt.NewNumericDate(c.Expires),
		},
		Namespace:      c.Namespace,
		Tenant:         c.Tenant,
		Agent:          c.Agent,
		Session:        c.Session,
		PodUID:         c.PodUID,
		ServiceAccount: c.ServiceAccount,
	}
}

func (w wire) claims() Claims {
	c := Claims{
		ID:             w.ID,
		Namespace:      w.Namespace,
		Tenant:         w.Tenant,
		Agent:          w.Agent,
		Session:        w.Session,
		PodUID:         w.PodUID,
		ServiceAccount: w.ServiceAccount,
	}
	if w.IssuedAt != nil {
		c.IssuedAt = w.IssuedAt.Time
	}
	if w.ExpiresAt != nil {
		c.Expires = w.ExpiresAt.Time
	}
	return c
}
