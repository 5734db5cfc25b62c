package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/rebalancer/internal/foreign"
	"partidor.dev/partidor/shared/rulesfile"
)

// rulesImport writes a rules file and changes nothing: what comes out is to be read, then applied.
func rulesImport(t *tool) *cobra.Command {
	from, keys := "", foreign.EnvoyKeys{}
	c := &cobra.Command{
		Use: "import --from kong|envoy FILE", Short: "Turn another gateway's limits into a rules file, with a report of what is lost", Args: args(cobra.ExactArgs(1)),
		Long: `Turn the limits of a Kong declarative file or of an envoy-ratelimit domain into a rules file on the output. The report of
what could not be carried over is written beside it. Nothing is changed: read the file, then apply it.`,
		Example: "  partidorctl rules import --from kong kong.yaml > rules.yaml && partidorctl rules apply -f rules.yaml",
		RunE: func(_ *cobra.Command, a []string) error {
			data, err := os.ReadFile(a[0])
			if err != nil {
				return usageError{err}
			}
			var r foreign.Result
			switch from {
			case "kong":
				r, err = foreign.Kong(data)
			case "envoy":
				r, err = foreign.Envoy(data, keys)
			default:
				err = fmt.Errorf("--from: %q, must be kong or envoy", from)
			}
			if err != nil {
				return usageError{err}
			}
			lost := 0
			for _, n := range r.Notes {
				mark := "note"
				if n.Lost {
					mark = "lost"
					lost++
				}
				fmt.Fprintf(t.err, "%s: %s: %s\n", mark, n.Path, n.Text)
			}
			fmt.Fprintf(t.err, "%d rules, %d limits lost\n", len(r.Rules), lost)
			out, err := (&rulesfile.File{Rules: r.Rules}).Marshal()
			if err != nil {
				return err
			}
			_, err = t.out.Write(out)
			return err
		},
	}
	c.Flags().StringVar(&from, "from", "", "kong or envoy")
	c.Flags().StringVar(&keys.Tenant, "tenant-key", "tenant", "envoy: descriptor key that stands for the tenant")
	c.Flags().StringVar(&keys.Route, "route-key", "route", "envoy: descriptor key that stands for the route")
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"kong", "envoy"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
