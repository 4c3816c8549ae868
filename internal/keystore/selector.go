package keystore

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/key"
)

// Selector names keys by what they were made for. What is set narrows: a key has to fit all of it. An admin key fits none,
// since it reaches no memory: it is revoked by its id alone.
type Selector struct {
	All            bool   // every key; alone
	Tenant         string // whose memory the key reaches: the namespace of that name, and those that begin with it and ":"
	Agent          string // of Tenant, which must be set: the namespace "<tenant>:<agent>", or the tenant's, bound to the agent
	Session        string // the pod's name, in whatever namespace
	PodNamespace   string // the Kubernetes namespace
	ServiceAccount string // in PodNamespace
	PodUID         string
}

// ErrNothingSelected says that a Selector is empty. It never means all.
var ErrNothingSelected = errors.New("no key is named: all of them are meant only if that is said")

// Check refuses a Selector that names nothing, or that would end more than it says.
func (s Selector) Check() error {
	named := s
	named.All = false
	switch {
	case s == Selector{}:
		return ErrNothingSelected
	case s.All && named != Selector{}:
		return errors.New("all keys are asked for, and some of them, too: say one of the two")
	case s.Agent != "" && s.Tenant == "":
		return errors.New("an agent is named without its tenant: two tenants may have one of that name")
	}
	return nil
}

// conditions writes the conditions of one statement: its arguments come in their order.
type conditions struct {
	mark    string                // of a numbered argument: $ in PostgreSQL, ? in SQLite
	instant func(t time.Time) any // as the column has it
	now     time.Time
	args    []any
}

func (c *conditions) arg(v any) string {
	c.args = append(c.args, v)
	return c.mark + strconv.Itoa(len(c.args))
}

// revoked is what to SET of keys that end.
func (c *conditions) revoked(reason string, at time.Time) string {
	return "revoked_at = " + c.arg(c.instant(at)) + ", revoked_for = " + c.arg(reason)
}

// where is the condition for the keys that s names and that still open a door: those of pods, which are signed, for a
// moment longer than they say.
func (c *conditions) where(s Selector) string {
	all := []string{
		"revoked_at IS NULL",
		// The first of the two is what an index finds.
		"(expires_at IS NULL OR expires_at > " + c.arg(c.instant(c.now.Add(-key.Leeway))) + ")",
		"(expires_at IS NULL OR kind = 'signed' OR expires_at > " + c.arg(c.instant(c.now)) + ")",
	}
	add := func(condition string) { all = append(all, condition) }
	if s.PodUID != "" {
		add("kind = 'signed' AND pod_uid = " + c.arg(s.PodUID)) // the index keys_by_pod_uid
	} else {
		add("kind <> 'admin'")
	}
	switch {
	case s.Agent != "":
		add("(namespace = " + c.arg(s.Tenant+":"+s.Agent) + " OR namespace = " + c.arg(s.Tenant) + " AND agent = " + c.arg(s.Agent) + ")")
	case s.Tenant != "":
		// Texts compare byte by byte, and ";" is what comes after ":".
		add("(namespace = " + c.arg(s.Tenant) + " OR namespace > " + c.arg(s.Tenant+":") + " AND namespace < " + c.arg(s.Tenant+";") + ")")
	}
	for _, column := range []struct{ name, value string }{
		{"session", s.Session}, {"pod_namespace", s.PodNamespace}, {"service_account", s.ServiceAccount},
	} {
		if column.value != "" {
			add(column.name + " = " + c.arg(column.value))
		}
	}
	return strings.Join(all, " AND ")
}
