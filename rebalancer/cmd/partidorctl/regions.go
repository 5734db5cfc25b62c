package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func regionsCommand(t *tool) *cobra.Command {
	return group("regions", "Regions and the base split", regionsList(t), regionsSet(t),
		regionState(t, "drain NAME", "Move the region's shares of moved keys to the others, by transfers; the base split is changed by regions set", "draining", ""),
		regionState(t, "declare-dead NAME", "Say that a region is gone for good", "dead", deadWarning),
		regionState(t, "restore NAME", "Take a drained or dead region back into service", "active", ""))
}

const deadWarning = `WARNING: this is your word that the region admits nothing any more. Nobody waits for it from now on, and its part of the
base split can be given to the others (partidorctl regions set). If its gateways still run, cut off from us, they go on
admitting their share of every limit, and what the others get comes on top: the worldwide limit may be exceeded by that
share for as long as they run. Make sure first that they are stopped or that no traffic reaches them. Shares of moved keys
above the region's floor are minted anew for the others as soon as all of these have answered; while two regions are dead
nothing is. Empty the region's Redis before you restore it: it then learns from the others what it still holds.`

func regionsList(t *tool) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Regions and what is heard of them", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			var p page
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("regions")}, &p); err != nil {
				return err
			}
			return t.show(p.Items, func() {
				rows := make([][]string, len(p.Items))
				for i, r := range p.Items {
					heard := "silent"
					if r["known"] == true {
						heard = text(r, "instances") + " instances"
						if r["behind"] == true {
							heard += ", rules at " + or(text(r, "reached"), "?")
						}
					}
					rows[i] = []string{text(r, "name"), text(r, "state"), percent(r, "base"), percent(r, "published"), or(percent(r, "floor"), "-"),
						or(text(r, "domain"), "-"), heard, rate(r, "offered"), rate(r, "refused")}
				}
				t.table("REGION STATE BASE PUBLISHED FLOOR DOMAIN HEARD OFFERED/S REFUSED/S", rows)
			})
		}),
	}
}

func regionsSet(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "set REGION=SHARE…", Short: "Configure the base split of all regions; new names are added", Args: args(cobra.MinimumNArgs(1)),
		Example: "  partidorctl regions set eu=50% us=30% ap=20%",
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			split, err := shares(a)
			if err != nil {
				return err
			}
			return t.changeRegions(cmd, c, call{method: http.MethodPut, path: path("regions"), body: item{"base": split, "reason": t.reason}})
		}),
	})
}

// changeRegions is change for a list of regions.
func (t *tool) changeRegions(cmd *cobra.Command, c *client, r call) error {
	type lists struct {
		Before []item `json:"before"`
		After  []item `json:"after"`
	}
	trial := r
	trial.query = map[string][]string{"dry_run": {"true"}}
	var d lists
	if err := c.do(cmd.Context(), trial, &d); err != nil {
		return err
	}
	bases := func(list []item) item {
		out := item{}
		for _, region := range list {
			out[text(region, "name")] = percent(region, "base")
		}
		return out
	}
	diff := difference{Before: bases(d.Before), After: bases(d.After)}
	t.print("base split", diff.lines())
	if t.dryRun || len(diff.lines()) == 0 {
		return nil
	}
	if err := t.confirm(); err != nil {
		return err
	}
	if err := c.do(cmd.Context(), r, &d); err != nil {
		return err
	}
	return t.show(d, func() { fmt.Fprintln(t.err, "done; gateways follow in two steps, see partidorctl regions list") })
}

func regionState(t *tool, use, short, state, warning string) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: use, Short: short, Long: short + ".\n" + warning, Args: args(cobra.ExactArgs(1)), ValidArgsFunction: t.regionNames,
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			if warning != "" {
				fmt.Fprintln(t.err, warning)
			}
			return t.change(cmd.Context(), c, "region "+a[0],
				call{method: http.MethodPut, path: path("regions", a[0], "state"), body: item{"state": state, "reason": t.reason}})
		}),
	})
}

// regionNames completes names by asking the server.
func (t *tool) regionNames(cmd *cobra.Command, a []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	c, err := t.open()
	if err != nil || len(a) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var p page
	if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("regions")}, &p); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, r := range p.Items {
		names = append(names, text(r, "name")+"\t"+text(r, "state"))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
