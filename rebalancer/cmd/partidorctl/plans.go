package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
)

func plansCommand(t *tool) *cobra.Command {
	return group("plans", "Plans of tenants; the rules of plan gold are those of tenant @gold", plansList(t), plansTenants(t), plansAssign(t), tenantsDelete(t))
}

func plansList(t *tool) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Plans, and how many tenants and rules they have", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			tenants, _, err := c.list(cmd.Context(), path("tenants"), nil, 0)
			if err != nil {
				return err
			}
			rules, _, err := c.list(cmd.Context(), path("rules"), url.Values{"q": {"@"}}, 0)
			if err != nil {
				return err
			}
			type plan struct {
				Plan    string `json:"plan"`
				Tenants int    `json:"tenants"`
				Rules   int    `json:"rules"`
			}
			plans := map[string]*plan{}
			at := func(name string) *plan {
				if plans[name] == nil {
					plans[name] = &plan{Plan: name}
				}
				return plans[name]
			}
			for _, tenant := range tenants {
				if name := text(tenant, "plan"); name != "" {
					at(name).Tenants++
				}
			}
			for _, r := range rules {
				if name := text(r, "tenant"); len(name) > 1 && name[0] == '@' {
					at(name[1:]).Rules++
				}
			}
			list := make([]*plan, 0, len(plans))
			rows := [][]string{}
			for _, name := range slices.Sorted(maps.Keys(plans)) {
				p := plans[name]
				list = append(list, p)
				rows = append(rows, []string{name, fmt.Sprint(p.Tenants), fmt.Sprint(p.Rules)})
			}
			return t.show(list, func() { t.table("PLAN TENANTS RULES", rows) })
		}),
	}
}

func plansTenants(t *tool) *cobra.Command {
	plan, part, limit := "", "", 100
	c := &cobra.Command{
		Use: "tenants", Short: "Tenants and their plans", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			items, more, err := c.list(cmd.Context(), path("tenants"), url.Values{"plan": {plan}, "q": {part}}, limit)
			if err != nil {
				return err
			}
			t.more(more, limit)
			return t.show(items, func() {
				rows := make([][]string, len(items))
				for i, tenant := range items {
					rows[i] = []string{text(tenant, "id"), or(text(tenant, "plan"), "-"), ago(tenant, "updated_at"), text(tenant, "updated_by")}
				}
				t.table("TENANT PLAN UPDATED BY", rows)
			})
		}),
	}
	c.Flags().StringVar(&plan, "plan", "", "only of this plan")
	c.Flags().StringVar(&part, "search", "", "only ids that hold this")
	c.Flags().IntVar(&limit, "limit", limit, "at most so many; 0 for all")
	return c
}

func plansAssign(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "assign TENANT [PLAN]", Short: "Create a tenant or put it on a plan; without PLAN on none", Args: args(cobra.RangeArgs(1, 2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			plan := ""
			if len(a) == 2 {
				plan = a[1]
			}
			return t.change(cmd.Context(), c, "tenant "+a[0],
				call{method: http.MethodPut, path: path("tenants", a[0]), body: item{"plan": plan, "reason": t.reason}})
		}),
	})
}

func tenantsDelete(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "forget TENANT", Short: "Delete a tenant and its API keys; its rules stay", Args: args(cobra.ExactArgs(1)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.change(cmd.Context(), c, "tenant "+a[0], call{method: http.MethodDelete, path: path("tenants", a[0]), query: t.reasonQuery()})
		}),
	})
}
