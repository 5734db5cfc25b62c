package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// ruleSet is what apply sends and rulePlan what it answers.
type ruleSet struct {
	Rules  []rulesfile.Rule `json:"rules"`
	Prune  bool             `json:"prune"`
	Reason string           `json:"reason,omitempty"`
}

type rulePlan struct {
	Create    []item       `json:"create"`
	Update    []difference `json:"update"`
	Delete    []item       `json:"delete"`
	Unchanged int          `json:"unchanged"`
	Revision  string       `json:"revision"`
}

func (p *rulePlan) empty() bool { return len(p.Create)+len(p.Update)+len(p.Delete) == 0 }

// readFile reads a rules file; "-" is the standard input.
func (t *tool) readFile(name string) (*rulesfile.File, error) {
	data, err := t.read(name)
	if err != nil {
		return nil, usageError{err}
	}
	f, err := rulesfile.Parse(name, data)
	if err != nil {
		return nil, usageError{err}
	}
	return f, nil
}

func (t *tool) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(t.in)
	}
	return os.ReadFile(name)
}

// section of a rules file that is not of rules, and who makes what it says.
type section struct {
	name, command string
	written       func(*rulesfile.File) bool
}

var elsewhere = []section{
	{"regions", "partidorctl regions apply", func(f *rulesfile.File) bool { return len(f.Regions) > 0 }},
	{"default", "the configuration of gateways and rebalancers", func(f *rulesfile.File) bool { return f.Default != nil }},
	{"tenants", "partidorctl plans assign", func(f *rulesfile.File) bool { return len(f.Tenants) > 0 }},
	{"api_keys", "partidorctl keys create", func(f *rulesfile.File) bool { return len(f.APIKeys) > 0 }},
}

// readRules reads a file of rules. What else stands in it would be left out, so it is refused by name and line, unless the operator
// says that only the rules count.
func (t *tool) readRules(name string, only bool) ([]rulesfile.Rule, error) {
	data, err := t.read(name)
	if err != nil {
		return nil, usageError{err}
	}
	f, err := rulesfile.Parse(name, data)
	if err != nil {
		return nil, usageError{err}
	}
	others := slices.DeleteFunc(slices.Clone(elsewhere), func(e section) bool { return !e.written(f) })
	if only || len(others) == 0 {
		return f.Rules, nil
	}
	doc, err := config.Parse(name, data) // again, for the lines
	if err != nil {
		return nil, usageError{err}
	}
	var faults []error
	for _, e := range others {
		faults = append(faults, fmt.Errorf("%s:%d: %s: only rules are applied; that is made by %s, or say --rules-only to leave it", name, doc.Line(e.name), e.name, e.command))
	}
	return nil, usageError{errors.Join(faults...)}
}

// tryRules is the plan, makeRules its execution, if the rules still are what the plan was made for.
func tryRules(ctx context.Context, c *client, set ruleSet) (p rulePlan, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: path("rules"), query: url.Values{"dry_run": {"true"}}, body: set}, &p)
	return p, err
}

func makeRules(ctx context.Context, c *client, set ruleSet, seen string) (p rulePlan, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: path("rules"), body: set, match: seen}, &p)
	return p, err
}

// planTable prints what it takes, cut to what a person reads.
func (t *tool) planTable(p *rulePlan) {
	const most = 50
	lines := make([]string, 0, min(most, len(p.Create)+len(p.Update)+len(p.Delete)))
	name := func(r item) string { return text(r, "tenant") + "/" + text(r, "route") }
	for _, r := range p.Create {
		lines = append(lines, "+ "+name(r)+": "+numbers(r))
	}
	for _, d := range p.Update {
		lines = append(lines, "~ "+name(d.After)+": "+brief(d.lines()))
	}
	for _, r := range p.Delete {
		lines = append(lines, "- "+name(r)+": "+numbers(r))
	}
	for i, l := range lines {
		if i == most {
			fmt.Fprintf(t.out, "  … and %d more; --output json shows all\n", len(lines)-most)
			break
		}
		fmt.Fprintln(t.out, "  "+l)
	}
	fmt.Fprintf(t.out, "%d to create, %d to change, %d to delete, %d unchanged\n", len(p.Create), len(p.Update), len(p.Delete), p.Unchanged)
}

func rulesDiff(t *tool) *cobra.Command {
	file, prune, only := "", false, false
	c := &cobra.Command{
		Use: "diff -f FILE", Short: "What apply would change; exit code 3 where there is anything", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			rules, err := t.readRules(file, only)
			if err != nil {
				return err
			}
			p, err := tryRules(cmd.Context(), c, ruleSet{Rules: rules, Prune: prune})
			if err != nil {
				return err
			}
			if err := t.show(p, func() { t.planTable(&p) }); err != nil {
				return err
			}
			if !p.empty() {
				return errDiffers
			}
			return nil
		}),
	}
	c.Flags().StringVarP(&file, "file", "f", "-", "rules file; - is the standard input")
	c.Flags().BoolVar(&only, "rules-only", false, "leave out what else the file says: regions, tenants, api_keys, default")
	c.Flags().BoolVar(&prune, "prune", false, "count rules that are not in the file")
	return c
}

func rulesApply(t *tool) *cobra.Command {
	file, prune, only := "", false, false
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Make the rules as the file says, all or none", Args: args(cobra.NoArgs),
		Long: `Make the rules as the file says, all or none, after showing the plan. A file with one bad line changes nothing and names
the line. Rules that are not in the file stay, unless --prune deletes them. A file that says more than rules is refused, unless
--rules-only leaves the rest out.`,
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			rules, err := t.readRules(file, only)
			if err != nil {
				return err
			}
			set := ruleSet{Rules: rules, Prune: prune, Reason: t.reason}
			p, err := tryRules(cmd.Context(), c, set)
			if err != nil {
				return err
			}
			if t.dryRun {
				return t.show(p, func() { t.planTable(&p) })
			}
			if t.output == "table" {
				t.planTable(&p)
			}
			if p.empty() {
				return nil
			}
			if file == "-" {
				t.terminal = false // what was read is the file, not the answer
			}
			if err := t.confirm(); err != nil {
				return err
			}
			done, err := makeRules(cmd.Context(), c, set, p.Revision)
			if err != nil {
				return err
			}
			return t.show(done, func() { fmt.Fprintln(t.err, "done") })
		}),
	}
	c.Flags().StringVarP(&file, "file", "f", "-", "rules file; - is the standard input")
	c.Flags().BoolVar(&only, "rules-only", false, "leave out what else the file says: regions, tenants, api_keys, default")
	c.Flags().BoolVar(&prune, "prune", false, "delete the rules that are not in the file")
	return t.changing(c)
}

func rulesExport(t *tool) *cobra.Command {
	part := ""
	c := &cobra.Command{
		Use: "export", Short: "All rules as a rules file: apply of an export changes nothing", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			items, _, err := c.list(cmd.Context(), path("rules"), url.Values{"q": {part}}, 0)
			if err != nil {
				return err
			}
			f := rulesfile.File{Rules: make([]rulesfile.Rule, len(items))}
			for i, it := range items {
				raw, err := json.Marshal(it)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(raw, &f.Rules[i]); err != nil {
					return err
				}
				reason := f.Rules[i].Reason
				f.Rules[i] = rulesfile.Of(f.Rules[i].Tenant, f.Rules[i].Route, f.Rules[i].Limit(limit.Revision{}))
				f.Rules[i].Reason = reason
			}
			out, err := f.Marshal()
			if err != nil {
				return err
			}
			_, err = t.out.Write(out)
			return err
		}),
	}
	c.Flags().StringVar(&part, "search", "", "only rules whose names hold this")
	return c
}
