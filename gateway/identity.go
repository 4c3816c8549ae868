package gateway

import (
	"context"
	"errors"
	"fmt"
)

// MaxNamespaceBytes bounds a namespace, in bytes (Memory API, section 2).
const MaxNamespaceBytes = 128

// Identity is whose data a request is about. It is what the gateway says, and the only thing a backend believes.
type Identity struct {
	Namespace string // "<tenant>:<agent>" for a sandbox; opaque to a backend
	Tenant    string // empty for a key that an admin made for a namespace
	Agent     string // empty when the key is bound to no agent
	Session   string // the pod that holds the key; empty for a key that an admin made
	KeyID     string // names the key in logs; it is no secret
}

// Validate checks what a backend relies on: a namespace of the agreed form, and no control characters anywhere.
func (id Identity) Validate() error {
	if err := CheckNamespace(id.Namespace); err != nil {
		return err
	}
	for _, f := range []struct{ name, value string }{
		{"tenant", id.Tenant}, {"agent", id.Agent}, {"session", id.Session}, {"key id", id.KeyID},
	} {
		if len(f.value) > 2*MaxNamespaceBytes {
			return fmt.Errorf("%s is longer than %d bytes", f.name, 2*MaxNamespaceBytes)
		}
		for i := range len(f.value) {
			if c := f.value[i]; c < ' ' || c > '~' {
				return fmt.Errorf("%s holds the byte %#02x; only printable ASCII is allowed", f.name, c)
			}
		}
	}
	return nil
}

// CheckNamespace says what is wrong with a namespace: it has 1 to 128 bytes, begins with a letter or digit, and goes on
// with letters, digits, and _ - . : (Memory API, section 2).
func CheckNamespace(namespace string) error {
	if namespace == "" {
		return errors.New("namespace is empty")
	}
	if len(namespace) > MaxNamespaceBytes {
		return fmt.Errorf("namespace is %d bytes long; at most %d are allowed", len(namespace), MaxNamespaceBytes)
	}
	for i := range len(namespace) {
		c := namespace[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '_' || c == '-' || c == '.' || c == ':'):
		default:
			return fmt.Errorf("namespace %q: byte %d is %q; begin with a letter or digit, then use those and the signs _ - . : only", namespace, i+1, c)
		}
	}
	return nil
}

type contextKey struct{}

// WithIdentity returns a context that carries id.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext returns the identity that Middleware put there. The second result is false for a request that did not
// pass it, which a handler must treat as unauthenticated.
func FromContext(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(contextKey{}).(Identity)
	return id, ok
}
