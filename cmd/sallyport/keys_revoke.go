package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
)

// keysRevokeCommand ends keys. What names many is a pointer, so that an empty name is not taken for none: the server
// refuses it.
type keysRevokeCommand struct {
	adminFlags
	IDs            []string `arg:"" optional:"" name:"id" help:"The keys' ids, as 'keys list' shows them."`
	Agent          *string  `help:"All keys of an agent." placeholder:"TENANT:AGENT"`
	Session        *string  `help:"All keys of pods of this name." placeholder:"POD"`
	Tenant         *string  `help:"All keys of a tenant." placeholder:"TENANT"`
	ServiceAccount *string  `help:"All keys of a service account's pods." placeholder:"NAMESPACE/NAME"`
	All            bool     `help:"Every key but admin keys."`
	Reason         string   `help:"Why; it is kept with the keys, and logged." placeholder:"TEXT"`
}

// Run revokes keys.
func (c *keysRevokeCommand) Run(env *environment) error {
	ask := map[string]any{}
	for name, given := range map[string]*string{
		"agent": c.Agent, "session": c.Session, "tenant": c.Tenant, "service_account": c.ServiceAccount,
	} {
		if given != nil {
			ask[name] = *given
		}
	}
	if c.All {
		ask["all"] = true
	}
	switch {
	case len(c.IDs) > 0 && len(ask) > 0:
		return errors.New("keys are named by their ids and otherwise: do one after the other")
	case len(c.IDs) > 0:
		return c.revokeEach(env)
	case len(ask) == 0:
		return errors.New("no key is named: give ids, or --agent, --session, --tenant, --service-account (together they narrow), or --all")
	}
	if c.Reason != "" {
		ask["reason"] = c.Reason
	}
	return c.revokeMany(env, ask)
}

func (c *keysRevokeCommand) revokeEach(env *environment) error {
	var ask any
	if c.Reason != "" {
		ask = map[string]string{"reason": c.Reason}
	}
	for _, id := range c.IDs {
		if _, err := c.call(env.ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), ask); err != nil {
			return fmt.Errorf("revoke %s: %w", id, err)
		}
		if _, err := fmt.Fprintf(env.stdout, "revoked %s\n", id); err != nil {
			return err
		}
	}
	return nil
}

func (c *keysRevokeCommand) revokeMany(env *environment, ask map[string]any) error {
	body, err := c.call(env.ctx, http.MethodPost, "/v1/keys/revoke", ask)
	if err != nil {
		return err
	}
	var ended struct {
		Count int         `json:"count"`
		Keys  []listedKey `json:"keys"`
	}
	if err := json.Unmarshal(body, &ended); err != nil {
		return fmt.Errorf("read what was revoked: %w", err)
	}
	const gap = 2
	w := tabwriter.NewWriter(env.stdout, 0, 0, gap, ' ', 0)
	for _, k := range ended.Keys {
		fmt.Fprintf(w, "revoked %s\t%s\t%s\n", k.ID, k.Namespace, k.Session) //nolint:errcheck // Flush tells
	}
	fmt.Fprintf(w, "%d revoked\n", ended.Count) //nolint:errcheck // Flush tells
	if c.All {
		fmt.Fprintln(w, "admin keys live on: revoke each by its id") //nolint:errcheck // Flush tells
	}
	return w.Flush()
}
