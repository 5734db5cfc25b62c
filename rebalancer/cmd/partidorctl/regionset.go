package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/rulesfile"
)

func regionsSet(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "set REGION=SHARE…", Short: "Configure the base split of all regions; new names are added", Args: args(cobra.MinimumNArgs(1)),
		Example: "  partidorctl regions set eu=50% us=30% ap=20%",
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			split, err := shares(a)
			if err != nil {
				return err
			}
			declared := item{}
			for name, share := range split {
				declared[name] = item{"base": share}
			}
			return t.changeRegions(cmd, c, declared)
		}),
	})
}

func regionsApply(t *tool) *cobra.Command {
	file := ""
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Make all regions as the section regions of a rules file says", Args: args(cobra.NoArgs),
		Long: `Make all regions as the section regions of a rules file says: base shares, floors, failure domains. A floor that is not
there is left to the parameter floor, a domain that is not there is none.`,
		Example: "  printf 'regions: {eu: {base: 70%, floor: 10%, domain: rack-1}, us: 30%}\n' | partidorctl regions apply --yes",
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			f, err := t.readFile(file)
			if err != nil {
				return err
			}
			if len(f.Regions) == 0 {
				return usageError{fmt.Errorf("%s: regions: missing", file)}
			}
			declared := item{}
			for name, r := range f.Regions {
				floor := rulesfile.Part(0)
				if r.Floor != nil {
					floor = *r.Floor
				}
				declared[name] = item{"base": r.Base, "floor": floor, "domain": r.Domain}
			}
			return t.changeRegions(cmd, c, declared)
		}),
	}
	c.Flags().StringVarP(&file, "file", "f", "-", "rules file; - is the standard input")
	return t.changing(c)
}

// changeRegions is change for all regions as a whole.
func (t *tool) changeRegions(cmd *cobra.Command, c *client, declared item) error {
	type lists struct {
		Before []item `json:"before"`
		After  []item `json:"after"`
	}
	r := call{method: http.MethodPut, path: path("regions"), body: item{"regions": declared, "reason": t.reason}}
	trial := r
	trial.query = map[string][]string{"dry_run": {"true"}}
	var d lists
	if err := c.do(cmd.Context(), trial, &d); err != nil {
		return err
	}
	diff := difference{Before: configured(d.Before), After: configured(d.After)}
	lines := diff.lines()
	if t.dryRun {
		return t.show(d, func() { t.print("regions", lines) })
	}
	if t.output == "table" || t.terminal {
		t.print("regions", lines)
	}
	if len(lines) == 0 {
		return nil
	}
	if err := t.confirm(); err != nil {
		return err
	}
	var seen limit.Revision
	for _, region := range d.Before {
		at, err := limit.ParseRevision(text(region, "revision"))
		if err != nil {
			return fmt.Errorf("region %s: %w", text(region, "name"), err)
		}
		seen = seen.Max(at)
	}
	if r.absent = len(d.Before) == 0; !r.absent {
		r.match = seen.String()
	}
	if err := c.do(cmd.Context(), r, &d); err != nil {
		return err
	}
	return t.show(d, func() { fmt.Fprintln(t.err, "done; gateways follow in two steps, see partidorctl regions list") })
}

// configured is what people say of regions, in one object.
func configured(regions []item) item {
	out := item{}
	for _, r := range regions {
		name := text(r, "name")
		out[name] = percent(r, "base")
		if floor := percent(r, "floor"); floor != "" {
			out[name+" floor"] = floor
		}
		if domain := text(r, "domain"); domain != "" {
			out[name+" domain"] = domain
		}
	}
	return out
}

func regionsChange(t *tool) *cobra.Command {
	floor, domain := "", ""
	c := &cobra.Command{
		Use: "change NAME", Short: "Change the floor or the failure domain of a region", Args: args(cobra.ExactArgs(1)), ValidArgsFunction: t.regionNames,
		Long: `Change the share that a region never gives away, in parts of the whole limit, or the failure domain that it stands in.
A floor of 0 leaves it to the parameter floor (a part of the region's base share), an empty domain is none.`,
		Example: "  partidorctl regions change us --floor 10% --domain rack-2",
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			body := item{"reason": t.reason}
			if cmd.Flags().Changed("floor") {
				part, err := rulesfile.ParsePart(floor)
				if err != nil {
					return usageError{fmt.Errorf("--floor: %w", err)}
				}
				body["floor"] = part
			}
			if cmd.Flags().Changed("domain") {
				body["domain"] = domain
			}
			if len(body) == 1 {
				return usageError{errors.New("nothing to change: say --floor or --domain")}
			}
			return t.change(cmd.Context(), c, "region "+a[0], call{method: http.MethodPatch, path: path("regions", a[0]), body: body})
		}),
	}
	c.Flags().StringVar(&floor, "floor", "", "share that it never gives away, such as 10% or 100000")
	c.Flags().StringVar(&domain, "domain", "", "failure domain that it stands in")
	return t.changing(c)
}

func regionsVoters(t *tool) *cobra.Command {
	return &cobra.Command{
		Use: "voters", Short: "Who votes on leases, and in which failure domains", Args: args(cobra.NoArgs),
		Long: `Who votes on leases, and in which failure domains. Each domain has one vote. Leases run where every region has declared
its domain (regions change NAME --domain) and at least three domains hold voters. The control plane votes where the parameter
control_domain says where it stands (rebalance params set). A region with a base share of 0 is a witness: it votes and holds
nothing.`,
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			var regions, parameters page
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("regions")}, &regions); err != nil {
				return err
			}
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("parameters")}, &parameters); err != nil {
				return err
			}
			voters := []item{}
			for _, r := range regions.Items {
				voters = append(voters, item{"voter": "region " + text(r, "name"), "domain": text(r, "domain")})
			}
			for _, p := range parameters.Items {
				if domain := text(p, "value"); text(p, "name") == "control_domain" && domain != "" {
					voters = append(voters, item{"voter": "control plane", "domain": domain})
				}
			}
			return t.show(voters, func() {
				rows := make([][]string, len(voters))
				domains := map[string]bool{}
				for i, v := range voters {
					rows[i] = []string{text(v, "voter"), or(text(v, "domain"), "-")}
					domains[text(v, "domain")] = true
				}
				t.table("VOTER DOMAIN", rows)
				switch {
				case domains[""]:
					fmt.Fprintln(t.err, "no leases run: not every region has declared its domain")
				case len(domains) < lease.MinDomains:
					fmt.Fprintf(t.err, "no leases run: %d domains, at least %d are needed\n", len(domains), lease.MinDomains)
				default:
					fmt.Fprintf(t.err, "leases run: %d domains vote\n", len(domains))
				}
			})
		}),
	}
}
