package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

func splitsCommand(t *tool) *cobra.Command {
	return group("splits", "How keys are shared among regions",
		splitsShow(t), splitsSet(t), splitsPin(t), splitsUnpin(t),
		historyOf(t, "history TENANT ROUTE", "Every move of a key's split, with its reason", "split,pin"),
		rollbackOf(t, "rollback TENANT ROUTE", "Bring a key's split back to before its last change, or before --to", "split,pin"))
}

func splitsShow(t *tool) *cobra.Command {
	var part, order string
	limit := 50
	c := &cobra.Command{
		Use: "show [TENANT [ROUTE]]", Short: "Shares, targets and pins; by default of the keys under most pressure", Args: args(cobra.MaximumNArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			q := url.Values{"q": {part}, "order": {order}}
			for i, name := range []string{"tenant", "route"}[:len(a)] {
				q.Set(name, a[i])
			}
			items, more, err := c.list(cmd.Context(), path("splits"), q, limit)
			if err != nil {
				return err
			}
			t.more(more, limit)
			return t.show(items, func() { t.splitTable(items) })
		}),
	}
	c.Flags().StringVar(&part, "search", "", "only keys whose names hold this")
	c.Flags().StringVar(&order, "order", "", "pressure: the most refused first")
	c.Flags().IntVar(&limit, "limit", limit, "at most so many; 0 for all")
	return c
}

func (t *tool) splitTable(items []item) {
	var rows [][]string
	for _, k := range items {
		for i, r := range objects(k, "regions") {
			tenant, route, reason := text(k, "tenant"), text(k, "route"), text(k, "reason")
			if i > 0 {
				tenant, route, reason = "", "", ""
			}
			share := about(r, "share")
			if r["reported"] != true {
				share += "?"
			}
			rows = append(rows, []string{tenant, route, text(r, "region"), share, about(r, "target"), or(percent(r, "pin"), "-"), rate(r, "offered"), rate(r, "refused"), reason})
		}
	}
	t.table("TENANT ROUTE REGION SHARE TARGET PIN OFFERED/S REFUSED/S REASON", rows)
}

// shares reads eu=70% us=300000.
func shares(words []string) (limit.Split, error) {
	split := limit.Split{}
	for _, w := range words {
		region, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("%q is not REGION=SHARE, such as eu=70%%", w)}
		}
		part, err := rulesfile.ParsePart(value)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", region, err)}
		}
		if _, twice := split[region]; twice {
			return nil, usageError{fmt.Errorf("%s is given twice", region)}
		}
		split[region] = limit.Share(part)
	}
	return split, nil
}

// pinning is a command that fixes shares for a while.
func pinning(t *tool, use, short string, segments ...string) *cobra.Command {
	var length time.Duration
	c := &cobra.Command{
		Use: use, Short: short, Args: args(cobra.MinimumNArgs(3)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			split, err := shares(a[2:])
			if err != nil {
				return err
			}
			if length < 0 || length%time.Second != 0 {
				return usageError{errors.New("--for: must be whole seconds")}
			}
			body := item{"shares": split, "reason": t.reason}
			if length > 0 {
				body["for_seconds"] = int64(length / time.Second)
			}
			return t.change(cmd.Context(), c, "pins of "+a[0]+"/"+a[1],
				call{method: http.MethodPut, path: path(append([]string{"splits", a[0], a[1]}, segments...)...), body: body})
		}),
	}
	c.Flags().DurationVar(&length, "for", 0, "how long")
	return t.changing(c)
}

func splitsSet(t *tool) *cobra.Command {
	c := pinning(t, "set TENANT ROUTE REGION=SHARE…", "Set the shares of all regions; the plan takes over again after --for, an hour by default")
	c.Long = "Set the shares of all regions. Shares still move by safe transfers only, never refilling a bucket. The plan takes over\nagain after --for, an hour by default."
	c.Example = "  partidorctl splits set shop-a create-order eu=50% us=50% --for 30m --reason 'failover drill'"
	return c
}

func splitsPin(t *tool) *cobra.Command {
	c := pinning(t, "pin TENANT ROUTE REGION=SHARE…", "Fix shares of some regions; the plan divides the rest", "pins")
	c.Example = "  partidorctl splits pin shop-a create-order eu=40% --for 24h --reason 'launch in us'"
	return c
}

func splitsUnpin(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "unpin TENANT ROUTE", Short: "Give all regions of a key back to the plan", Args: args(cobra.ExactArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.change(cmd.Context(), c, "pins of "+a[0]+"/"+a[1],
				call{method: http.MethodDelete, path: path("splits", a[0], a[1], "pins"), query: t.reasonQuery()})
		}),
	})
}

// reasonQuery carries the reason of a change without a body.
func (t *tool) reasonQuery() url.Values {
	if t.reason == "" {
		return url.Values{}
	}
	return url.Values{"reason": {t.reason}}
}
