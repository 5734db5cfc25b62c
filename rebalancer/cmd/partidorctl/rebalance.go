package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/rebalancer/internal/parameter"
)

func rebalanceCommand(t *tool) *cobra.Command {
	run := &cobra.Command{
		Use: "run", Short: "Ask the leader for a cycle now", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			if err := c.do(cmd.Context(), call{method: http.MethodPost, path: path("rebalance", "run")}, nil); err != nil {
				return err
			}
			fmt.Fprintln(t.err, "asked for; see partidorctl status")
			return nil
		}),
	}
	return group("rebalance", "The slow loop", planPreview(t), run,
		toggle(t, "pause", "Stop planning: shares stay where they are", "paused", true),
		toggle(t, "resume", "Plan again", "paused", false), paramsCommand(t))
}

// toggle is a command that sets a switch.
func toggle(t *tool, use, short, parameter string, on bool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: use, Short: short, Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			return t.setParameter(cmd, c, parameter, json.RawMessage(fmt.Sprint(on)))
		}),
	})
}

func (t *tool) setParameter(cmd *cobra.Command, c *client, name string, value json.RawMessage) error {
	return t.change(cmd.Context(), c, "parameter "+name,
		call{method: http.MethodPut, path: path("parameters", name), body: item{"value": value, "reason": t.reason}})
}

func shadowCommand(t *tool) *cobra.Command {
	return group("shadow", "The kill switch: decide and count, but admit everything",
		toggle(t, "on", "Admit everything from now on", "shadow", true), toggle(t, "off", "Enforce limits again", "shadow", false))
}

// value turns a word into JSON: what is JSON already stays, everything else is a text.
func value(word string) json.RawMessage {
	if json.Valid([]byte(word)) {
		return json.RawMessage(word)
	}
	out, err := json.Marshal(word)
	if err != nil {
		panic(err) // a string
	}
	return out
}

func paramsCommand(t *tool) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string, c *client) error {
		var p page
		if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("parameters")}, &p); err != nil {
			return err
		}
		return t.show(p.Items, func() {
			rows := make([][]string, len(p.Items))
			for i, v := range p.Items {
				by := text(v, "updated_by")
				if by != "" {
					by += ", " + ago(v, "updated_at")
				}
				rows[i] = []string{text(v, "name"), text(v, "value"), text(v, "default"), or(by, "-"), text(v, "help")}
			}
			t.table("NAME VALUE DEFAULT SET_BY MEANING", rows)
		})
	}
	set := t.changing(&cobra.Command{
		Use: "set NAME VALUE", Short: "Set a parameter, in force within seconds", Args: args(cobra.ExactArgs(2)),
		Example: "  partidorctl rebalance params set floor 10% --reason 'ap is new'", ValidArgsFunction: parameterNames,
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.setParameter(cmd, c, a[0], value(a[1]))
		}),
	})
	reset := t.changing(&cobra.Command{
		Use: "reset NAME", Short: "Go back to the default", Args: args(cobra.ExactArgs(1)), ValidArgsFunction: parameterNames,
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.change(cmd.Context(), c, "parameter "+a[0], call{method: http.MethodDelete, path: path("parameters", a[0]), query: t.reasonQuery()})
		}),
	})
	params := &cobra.Command{Use: "params", Short: "Parameters that change at run time", Args: args(cobra.NoArgs), RunE: t.run(list)}
	params.AddCommand(set, reset)
	return params
}

// parameterNames completes the first argument.
func parameterNames(_ *cobra.Command, a []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(a) == 0 {
		for _, d := range parameter.All() {
			names = append(names, d.Name+"\t"+d.Help)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func planPreview(t *tool) *cobra.Command {
	var with []string
	tenant, size, over := "", 50, 0
	c := &cobra.Command{
		Use: "plan", Short: "What a cycle would do now; --with tries other parameters", Args: args(cobra.NoArgs),
		Example: "  partidorctl rebalance plan --with floor=30% --with step=100% --over 6",
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			body := item{"tenant": tenant, "size": size, "over_hours": over, "with": item{}}
			for _, w := range with {
				name, v, ok := strings.Cut(w, "=")
				if !ok {
					return usageError{fmt.Errorf("--with: %q is not NAME=VALUE", w)}
				}
				object(body, "with")[name] = value(v)
			}
			var p item
			if err := c.do(cmd.Context(), call{method: http.MethodPost, path: path("rebalance", "plan"), body: body}, &p); err != nil {
				return err
			}
			return t.show(p, func() {
				fmt.Fprintf(t.out, "%s keys, %s would change, %s moves\n", text(p, "keys"), text(p, "changed"), text(p, "moves"))
				var rows [][]string
				for _, ch := range objects(p, "changes") {
					d := difference{Before: percents(object(ch, "before")), After: percents(object(ch, "after"))}
					rows = append(rows, []string{text(ch, "tenant"), text(ch, "route"), brief(d.lines()), text(ch, "reason")})
				}
				if len(rows) > 0 {
					t.table("TENANT ROUTE CHANGE REASON", rows)
				}
				if r := object(p, "replay"); r != nil {
					now, then := object(r, "now"), object(r, "with")
					fmt.Fprintf(t.out, "over the last %s h of recorded demand: refused %s -> %s of %s tokens (%s cannot be helped), moves %s -> %s\n", text(r, "hours"),
						rate(now, "refused"), rate(then, "refused"), rate(now, "offered"), rate(now, "unavoidable"), text(now, "moves"), text(then, "moves"))
				}
			})
		}),
	}
	c.Flags().StringArrayVar(&with, "with", nil, "NAME=VALUE of a parameter to try; may be repeated")
	c.Flags().IntVar(&over, "over", 0, "also replay so many hours of recorded demand, at most 24")
	c.Flags().StringVar(&tenant, "tenant", "", "show this tenant only")
	c.Flags().IntVar(&size, "limit", size, "show so many changes, the largest first")
	return c
}

// percents of a split.
func percents(split item) item {
	out := item{}
	for region := range split {
		out[region] = percent(split, region)
	}
	return out
}
