package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ErrGates says that a run missed gates; the report names them.
var ErrGates = errors.New("gates missed")

// Command is `rebalancer simulate`: it parses args, runs, and writes the report to out and progress to log. It returns
// flag.ErrHelp after -h and ErrGates where -gates was given and a gate is missed.
func Command(ctx context.Context, args []string, out, log io.Writer) error {
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(log)
	files := f.String("file", "", "scenario `files` in YAML, comma-separated, instead of the built-in ones")
	only := f.String("only", "", "`names` of scenarios, comma-separated; all by default")
	strategies := f.String("strategies", strings.Join(StrategyNames(), ","), "`names` of strategies, comma-separated")
	seeds := f.String("seeds", "1-3", "`seeds` as 1,2,3 or 1-3")
	format := f.String("format", "table", "`form` of the report: table or json")
	html := f.String("html", "", "write plots of the first seed into this `file`")
	gates := f.Bool("gates", false, "fail when a gate is missed")
	list := f.Bool("list", false, "list the scenarios and leave")
	quiet := f.Bool("quiet", false, "no progress")
	f.Usage = func() {
		fmt.Fprint(log, "Usage: rebalancer simulate [flags]\n\nPlays scenarios in virtual time over the code that ships.\n\n")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err //nolint:wrapcheck // flag.ErrHelp is part of the contract
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	scenarios, err := choose(*files, *only)
	if err != nil {
		return err
	}
	if *list {
		for i := range scenarios {
			fmt.Fprintf(out, "%-6s %s\n", scenarios[i].Name, scenarios[i].About)
		}
		return nil
	}
	job := Job{Scenarios: scenarios, Strategies: strings.Split(*strategies, ","), Plots: *html != ""}
	if job.Seeds, err = parseSeeds(*seeds); err != nil {
		return err
	}
	if !*quiet {
		job.Progress = func(done, all int) { fmt.Fprintf(log, "\r%d of %d runs", done, all) }
		defer fmt.Fprintln(log)
	}
	results, err := job.Run(ctx)
	if err != nil {
		return err
	}
	report := NewReport(scenarios, results)
	return finish(&report, scenarios, out, *format, *html, *gates)
}

func finish(report *Report, scenarios []Scenario, out io.Writer, format, html string, gates bool) error {
	switch format {
	case "table":
		if err := report.WriteTable(out); err != nil {
			return err
		}
	case "json":
		if err := report.WriteJSON(out); err != nil {
			return err
		}
	default:
		return fmt.Errorf("format %q, must be table or json", format)
	}
	if html != "" {
		if err := writePage(html, report, scenarios); err != nil {
			return err
		}
	}
	if n := report.Missed(); gates && n > 0 {
		return fmt.Errorf("%w: %d runs", ErrGates, n)
	}
	return nil
}

func writePage(path string, report *Report, scenarios []Scenario) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write plots: %w", err)
	}
	if err := report.WriteHTML(file, scenarios); err != nil {
		file.Close() //nolint:errcheck // the first error counts
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write plots: %w", err)
	}
	return nil
}

// choose finds the scenarios by file and name.
func choose(files, only string) ([]Scenario, error) {
	all := Builtin()
	if files != "" {
		all = nil
		for path := range strings.SplitSeq(files, ",") {
			s, err := LoadScenario(path)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	if only == "" {
		return all, nil
	}
	var out []Scenario
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q (try -list)", name)
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
