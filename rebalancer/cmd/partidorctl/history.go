package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func historyCommand(t *tool) *cobra.Command {
	var q struct{ kind, tenant, route, name, actor string }
	limit := 50
	c := &cobra.Command{
		Use: "history", Short: "Every change: who, when, why, before, after", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			return t.printHistory(cmd, c, url.Values{"kind": {q.kind}, "tenant": {q.tenant}, "route": {q.route}, "name": {q.name}, "actor": {q.actor}}, limit)
		}),
	}
	f := c.Flags()
	f.StringVar(&q.kind, "kind", "", "rule, tenant, api_key, region, parameter, split, pin; several with commas")
	f.StringVar(&q.tenant, "tenant", "", "of this tenant")
	f.StringVar(&q.route, "route", "", "of this route")
	f.StringVar(&q.name, "name", "", "of this region or parameter")
	f.StringVar(&q.actor, "actor", "", "by this person or rebalancer")
	f.IntVar(&limit, "limit", limit, "at most so many; 0 for all")
	c.AddCommand(t.changing(&cobra.Command{
		Use: "rollback ID", Short: "Bring one thing back to what it was before a change", Args: args(cobra.ExactArgs(1)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error { return t.rollback(cmd, c, a[0]) }),
	}))
	return c
}

// historyOf is the history of one key.
func historyOf(t *tool, use, short, kind string) *cobra.Command {
	limit := 50
	c := &cobra.Command{
		Use: use, Short: short, Args: args(cobra.ExactArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.printHistory(cmd, c, url.Values{"kind": {kind}, "tenant": {a[0]}, "route": {a[1]}}, limit)
		}),
	}
	c.Flags().IntVar(&limit, "limit", limit, "at most so many; 0 for all")
	return c
}

func (t *tool) printHistory(cmd *cobra.Command, c *client, q url.Values, limit int) error {
	items, more, err := c.list(cmd.Context(), path("history"), q, limit)
	if err != nil {
		return err
	}
	t.more(more, limit)
	return t.show(items, func() {
		rows := make([][]string, len(items))
		for i, e := range items {
			rows[i] = []string{text(e, "id"), ago(e, "at"), text(e, "kind"), text(e, "operation"), subject(e), text(e, "actor"), brief(changed(e)), text(e, "reason")}
		}
		t.table("ID AT KIND OPERATION OF BY CHANGE REASON", rows)
	})
}

// changed is what an entry of the history changed, in lines; shares are said as percentages.
func changed(e item) []string {
	d := difference{Before: object(e, "before"), After: object(e, "after")}
	switch text(e, "kind") {
	case "split":
		d.Before, d.After = percents(d.Before), percents(d.After)
	case "pin":
		d.Before, d.After = percents(object(d.Before, "shares")), percents(object(d.After, "shares"))
	}
	return d.lines()
}

func subject(e item) string {
	s := text(e, "name")
	if tenant := text(e, "tenant"); tenant != "" {
		s = tenant
		if route := text(e, "route"); route != "" {
			s += "/" + route
		}
	}
	return s
}

// brief is a difference in one cell.
func brief(lines []string) string {
	const most = 3
	s := ""
	for i, l := range lines {
		if i == most {
			return s + fmt.Sprintf("; %d more", len(lines)-most)
		}
		if i > 0 {
			s += "; "
		}
		s += l
	}
	return s
}

// rollbackOf undoes the last change of one key, or the one with the id --to.
func rollbackOf(t *tool, use, short, kind string) *cobra.Command {
	to := int64(0)
	c := &cobra.Command{
		Use: use, Short: short, Args: args(cobra.ExactArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			items, _, err := c.list(cmd.Context(), path("history"), url.Values{"kind": {kind}, "tenant": {a[0]}, "route": {a[1]}}, 1)
			if err != nil {
				return err
			}
			if len(items) == 0 {
				return &problem{Status: http.StatusNotFound, Title: "Not found", Detail: "nothing in the history of " + a[0] + "/" + a[1]}
			}
			id := text(items[0], "id")
			if to != 0 {
				id = fmt.Sprint(to)
			}
			return t.rollback(cmd, c, id)
		}),
	}
	c.Flags().Int64Var(&to, "to", 0, "id of the change to undo, from the history")
	return t.changing(c)
}

func (t *tool) rollback(cmd *cobra.Command, c *client, id string) error {
	return t.change(cmd.Context(), c, "rollback of change "+id,
		call{method: http.MethodPost, path: path("history", id, "rollback"), body: item{"reason": t.reason}})
}
