package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func regionsCommand(t *tool) *cobra.Command {
	return group("regions", "Regions: the base split, floors, failure domains", regionsList(t), regionsSet(t), regionsApply(t), regionsChange(t), regionsVoters(t),
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

func regionState(t *tool, use, short, state, warning string) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: use, Short: short, Long: short + ".\n" + warning, Args: args(cobra.ExactArgs(1)), ValidArgsFunction: t.regionNames,
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			if warning != "" {
				fmt.Fprintln(t.err, warning)
			}
			return t.change(cmd.Context(), c, "region "+a[0],
				call{method: http.MethodPatch, path: path("regions", a[0]), body: item{"state": state, "reason": t.reason}})
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
