package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"
)

// keysCommand manages keys through the exchange's admin API.
type keysCommand struct {
	List   keysListCommand   `cmd:"" help:"List the keys, the oldest first."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke keys: by their ids, or all of an agent, session, tenant or service account."`
	Mint   keysMintCommand   `cmd:"" help:"Make a key for a namespace, or an admin key. It is shown once."`
}

// listedKey is what is shown of a key (Memory API, section 2).
type listedKey struct {
	ID        string     `json:"id"`
	Namespace string     `json:"namespace"`
	Admin     bool       `json:"admin"`
	Revoked   bool       `json:"revoked"`
	Reason    string     `json:"revoked_reason"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Session   string     `json:"session"`
	Note      string     `json:"note"`
	Key       string     `json:"key"`
}

func (k listedKey) state(now time.Time) string {
	switch {
	case k.Revoked:
		return "revoked"
	case k.ExpiresAt != nil && now.After(*k.ExpiresAt):
		return "expired"
	case k.ExpiresAt == nil:
		return "good, never expires"
	default:
		return "good for " + k.ExpiresAt.Sub(now).Round(time.Second).String()
	}
}

type keysListCommand struct {
	adminFlags
	JSON bool `help:"Print the server's answer as it is." name:"json"`
}

// Run lists keys.
func (c *keysListCommand) Run(env *environment) error {
	body, err := c.call(env.ctx, http.MethodGet, "/v1/keys", nil)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := env.stdout.Write(body)
		return err
	}
	var answer struct {
		Keys []listedKey `json:"keys"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	const gap = 2
	w := tabwriter.NewWriter(env.stdout, 0, 0, gap, ' ', 0)
	fmt.Fprintln(w, "ID\tREACHES\tSESSION\tCREATED\tSTATE\tNOTE") //nolint:errcheck // Flush tells
	for _, k := range answer.Keys {
		reaches := k.Namespace
		if k.Admin {
			reaches = "(admin)"
		}
		note := k.Note
		if k.Reason != "" {
			note = k.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, reaches, k.Session, k.CreatedAt.Format(time.RFC3339), k.state(time.Now()), note) //nolint:errcheck // Flush tells
	}
	return w.Flush()
}

type keysMintCommand struct {
	adminFlags
	Namespace string        `help:"The namespace that the key reaches." xor:"what" required:""`
	Admin     bool          `help:"Make an admin key, which reaches no namespace." xor:"what" required:""`
	Agent     string        `help:"Bind the key to one agent of the namespace."`
	Session   string        `help:"Name the session that holds the key."`
	Note      string        `help:"What the key is for."`
	ExpiresIn time.Duration `help:"When the key expires; never without it." placeholder:"24h"`
}

// Run makes a key and prints it alone on its line, so that it can go straight into a secret store.
func (c *keysMintCommand) Run(env *environment) error {
	ask := map[string]any{"note": c.Note}
	if c.Admin {
		ask["admin"] = true
	} else {
		ask["namespace"], ask["agent"], ask["session"] = c.Namespace, c.Agent, c.Session
	}
	if c.ExpiresIn > 0 {
		ask["expires_in"] = c.ExpiresIn.String()
	}
	body, err := c.call(env.ctx, http.MethodPost, "/v1/keys", ask)
	if err != nil {
		return err
	}
	var k listedKey
	if err := json.Unmarshal(body, &k); err != nil {
		return fmt.Errorf("read the new key: %w", err)
	}
	_, err = fmt.Fprintln(env.stdout, k.Key)
	return err
}
