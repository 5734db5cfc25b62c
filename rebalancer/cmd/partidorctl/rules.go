package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

func rulesCommand(t *tool) *cobra.Command {
	return group("rules", "Rules: who may do how much",
		rulesGet(t), rulesSet(t), rulesDelete(t), rulesDiff(t), rulesApply(t), rulesExport(t), rulesImport(t),
		historyOf(t, "history TENANT ROUTE", "Every change of a rule", "rule"),
		rollbackOf(t, "rollback TENANT ROUTE", "Undo the last change of a rule, or the one --to", "rule"))
}

func rulesGet(t *tool) *cobra.Command {
	part, limit := "", 100
	c := &cobra.Command{
		Use: "get [TENANT [ROUTE]]", Short: "Rules as they are written", Args: args(cobra.MaximumNArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			if len(a) == 2 {
				var r item
				if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("rules", a[0], a[1])}, &r); err != nil {
					return err
				}
				return t.show(r, func() { t.ruleTable([]item{r}) })
			}
			q := url.Values{"q": {part}}
			if len(a) == 1 {
				q.Set("tenant", a[0])
			}
			items, more, err := c.list(cmd.Context(), path("rules"), q, limit)
			if err != nil {
				return err
			}
			t.more(more, limit)
			return t.show(items, func() { t.ruleTable(items) })
		}),
	}
	c.Flags().StringVar(&part, "search", "", "only rules whose names hold this")
	c.Flags().IntVar(&limit, "limit", limit, "at most so many; 0 for all")
	return c
}

func (t *tool) ruleTable(items []item) {
	rows := make([][]string, len(items))
	for i, r := range items {
		rows[i] = []string{text(r, "tenant"), text(r, "route"), numbers(r), or(text(r, "expires_at"), "-"), text(r, "revision"), ago(r, "updated_at"), text(r, "updated_by"), text(r, "reason")}
	}
	t.table("TENANT ROUTE LIMIT EXPIRES REVISION UPDATED BY REASON", rows)
}

func rulesSet(t *tool) *cobra.Command {
	var f ruleFlags
	c := &cobra.Command{
		Use: "set TENANT ROUTE", Short: "Create or change a rule; what is not given stays as it is", Args: args(cobra.ExactArgs(2)),
		Long: `Create or change a rule; what is not given stays as it is. TENANT may be "*" or "@" and a plan, ROUTE "*" or "@tenant" (a
limit over all routes of the tenant). Tokens and shares belong to the key, not to the rule: a change never refills a bucket.`,
		Example: "  partidorctl rules set shop-a create-order --capacity 200 --refill 100 --reason 'contract 17'\n" +
			"  partidorctl rules set shop-a '*' --mode block --for 1h --reason abuse",
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			var rule rulesfile.Rule
			err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("rules", a[0], a[1])}, &rule)
			if err != nil && exitCode(err) != exitNotFound {
				return err
			}
			rule.Tenant, rule.Route, rule.Reason = a[0], a[1], t.reason
			if err := f.apply(cmd.Flags(), &rule); err != nil {
				return err
			}
			return t.change(cmd.Context(), c, "rule of "+a[0]+"/"+a[1], call{method: http.MethodPut, path: path("rules", a[0], a[1]), body: rule})
		}),
	}
	f.define(c.Flags())
	for flag, names := range map[string][]string{"algorithm": algorithmNames, "mode": modeNames, "on-error": onErrorNames, "window": {"hour", "day", "month"}} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	}
	return t.changing(c)
}

func rulesDelete(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "delete TENANT ROUTE", Short: "Delete a rule: its keys go to the next match", Args: args(cobra.ExactArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.change(cmd.Context(), c, "rule of "+a[0]+"/"+a[1], call{method: http.MethodDelete, path: path("rules", a[0], a[1]), query: t.reasonQuery()})
		}),
	})
}

// algorithms, modes and policies by name, for completion and help.
var (
	algorithmNames = []string{limit.TokenBucket.String(), limit.FixedWindow.String(), limit.SlidingWindowLog.String(), limit.SlidingWindowCounter.String()}
	modeNames      = []string{limit.Enforce.String(), limit.Shadow.String(), limit.Block.String(), limit.Unlimited.String()}
	onErrorNames   = []string{limit.OnErrorLocal.String(), limit.OnErrorAllow.String(), limit.OnErrorDeny.String()}
)
