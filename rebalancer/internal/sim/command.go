package sim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// ErrGates says that a run missed gates; the report names them.
var ErrGates = errors.New("gates missed")

// options of `simulate`.
type options struct {
	files, only, strategies []string
	seeds, format, html     string
	gates, list, quiet      bool
	sweep                   bool
}

// Command is `simulate`, for the rebalancer and for partidorctl: the report goes to standard output, progress to standard
// error. Its error is ErrGates where a gate was missed.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play scenarios in virtual time over the code that ships",
		Long: "Simulate plays a limit, regions, traffic, a network and faults in virtual time over the code that ships, and compares\n" +
			"the result with one ideal bucket. The same seed gives the same bytes. It fails when a scenario misses its gates.",
		Example: "  rebalancer simulate --only S4a,S5 --seeds 1-5\n  rebalancer simulate --file black-friday.yaml --html report.html",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.files, "file", nil, "scenario files in YAML, instead of the built-in scenarios")
	f.StringSliceVar(&o.only, "only", nil, "names of scenarios (default all)")
	f.StringSliceVar(&o.strategies, "strategies", []string{NameStatic, NamePartidor}, "any of "+strings.Join(StrategyNames(), ", "))
	f.StringVar(&o.seeds, "seeds", "1-3", "seeds, as 1,2,3 or 1-3")
	f.StringVar(&o.format, "format", "table", "form of the report: table or json")
	f.StringVar(&o.html, "html", "", "file for a page with plots of the first seed")
	f.BoolVar(&o.sweep, "sweep", false, "built-in scenarios at many capacities, instead of all of them at their own")
	f.BoolVar(&o.gates, "gates", true, "fail when a gate is missed")
	f.BoolVar(&o.list, "list", false, "list the scenarios and leave")
	f.BoolVar(&o.quiet, "quiet", false, "no progress")
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	scenarios, err := o.choose()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.list {
		for i := range scenarios {
			fmt.Fprintf(out, "%-6s %s\n", scenarios[i].Name, scenarios[i].About)
		}
		return nil
	}
	if o.format != "table" && o.format != "json" {
		return fmt.Errorf("format %q, must be table or json", o.format)
	}
	job := Job{Scenarios: scenarios, Strategies: o.strategies, Plots: o.html != ""}
	if job.Seeds, err = parseSeeds(o.seeds); err != nil {
		return err
	}
	if !o.quiet {
		log := cmd.ErrOrStderr()
		job.Progress = func(done, all int) { fmt.Fprintf(log, "\r%d of %d runs", done, all) }
		defer fmt.Fprintln(log)
	}
	results, err := job.Run(cmd.Context())
	if err != nil {
		return err
	}
	report := NewReport(scenarios, results)
	if err := o.write(out, &report, scenarios); err != nil {
		return err
	}
	if n := report.Missed(); o.gates && n > 0 {
		return fmt.Errorf("%w in %d scenarios", ErrGates, n)
	}
	return nil
}

func (o *options) write(out io.Writer, report *Report, scenarios []Scenario) error {
	if o.html != "" {
		file, err := os.Create(o.html)
		if err != nil {
			return fmt.Errorf("write plots: %w", err)
		}
		if err := errors.Join(report.WriteHTML(file, scenarios), file.Close()); err != nil {
			return fmt.Errorf("write plots: %w", err)
		}
	}
	if o.format == "json" {
		return report.WriteJSON(out)
	}
	return report.WriteTable(out)
}

// choose finds the scenarios by file and name.
func (o *options) choose() ([]Scenario, error) {
	all, only := Builtin(), o.only
	if o.sweep {
		all = Sweep()
	}
	if len(o.files) > 0 {
		if o.sweep {
			return nil, errors.New("--sweep is for the built-in scenarios, not for files")
		}
		all = nil
		for _, path := range o.files {
			s, err := LoadScenario(path)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	if len(only) == 0 {
		return all, nil
	}
	var out []Scenario
	for _, name := range only {
		i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q (see --list)", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// parseSeeds reads "1,2,3" and "1-3".
func parseSeeds(s string) ([]uint64, error) {
	var out []uint64
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("seeds %q: %q is no number", s, from)
		}
		b := a
		if isRange {
			if b, err = strconv.ParseUint(to, 10, 32); err != nil || b < a || b-a > 10_000 {
				return nil, fmt.Errorf("seeds %q: bad range %q", s, part)
			}
		}
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out, nil
}
