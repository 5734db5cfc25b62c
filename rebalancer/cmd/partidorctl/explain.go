package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func explainCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use: "explain TENANT ROUTE", Short: "Why a key is limited as it is, and what would admit more", Args: args(cobra.ExactArgs(2)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			var x item
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("explain", a[0], a[1])}, &x); err != nil {
				return err
			}
			return t.show(x, func() { t.explain(x) })
		}),
	}
}

func (t *tool) explain(x item) {
	key := object(x, "key")
	fmt.Fprintf(t.out, "%s/%s\n", text(key, "tenant"), text(key, "route"))
	fmt.Fprintf(t.out, "rule: %s\n", text(x, "rule_from"))
	if rule := object(key, "rule"); rule != nil {
		fmt.Fprintf(t.out, "      %s, revision %s\n", numbers(rule), or(text(key, "rule_revision"), "0.0"))
	}
	for _, f := range asTexts(x["findings"]) {
		fmt.Fprintf(t.out, "- %s\n", f)
	}
	rows := [][]string{}
	for _, r := range objects(x, "regions") {
		heard := "silent"
		if r["known"] == true {
			heard = "heard, at " + or(text(r, "reached"), "?")
		}
		tokens := "?"
		if r["tokens"] != nil {
			tokens = rate(r, "tokens")
		}
		rows = append(rows, []string{text(r, "region"), heard, about(r, "share"), rate(r, "slice_capacity"), rate(r, "slice_rate"), tokens,
			rate(r, "offered"), rate(r, "refused"), sources(r)})
	}
	t.table("REGION STATE SHARE BURST RATE/S TOKENS OFFERED/S REFUSED/S DECIDED_BY", rows)
	t.gateways(x)
	t.moves(x)
	if reason := text(key, "reason"); reason != "" {
		fmt.Fprintf(t.out, "last decision %s: %s\n", ago(key, "decided_at"), reason)
	}
	for _, e := range objects(x, "recent") {
		fmt.Fprintf(t.out, "%s %s %s by %s: %s %s\n", ago(e, "at"), text(e, "kind"), text(e, "operation"), text(e, "actor"), brief(changed(e)), text(e, "reason"))
	}
}

// moves lists the last changes of shares and the last loans, the newest first.
func (t *tool) moves(x item) {
	const most = 12
	type move struct{ at, text string }
	var moves []move
	for _, r := range objects(x, "regions") {
		for _, m := range objects(r, "moves") {
			moves = append(moves, move{text(m, "at"), fmt.Sprintf("%s share of %s moved %s -> %s", ago(m, "at"), text(r, "region"), about(m, "from"), about(m, "to"))})
		}
	}
	for _, r := range objects(x, "regions") {
		for _, l := range objects(r, "loans") {
			moves = append(moves, move{text(l, "at"), fmt.Sprintf("%s %s lent %s to %s", ago(l, "at"), text(l, "from"), counted(text(l, "tokens"), "token"), text(r, "region"))})
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return strings.Compare(b.at, a.at) })
	for _, m := range moves[:min(len(moves), most)] {
		fmt.Fprintln(t.out, m.text)
	}
}

// counted is so many of something.
func counted(n, what string) string {
	if n == "1" {
		return "1 " + what
	}
	return n + " " + what + "s"
}

// gateways lists them with the rules that they serve by.
func (t *tool) gateways(x item) {
	rows := [][]string{}
	for _, r := range objects(x, "regions") {
		for _, g := range objects(r, "gateways") {
			state := []string{}
			for _, s := range []string{"degraded", "stale", "draining"} {
				if g[s] == true {
					state = append(state, s)
				}
			}
			rows = append(rows, []string{text(r, "region"), text(g, "instance"), text(g, "rules"), or(strings.Join(state, ", "), "ok")})
		}
	}
	t.table("REGION GATEWAY RULES STATE", rows)
}

// sources of recent decisions, in parts of all of them.
func sources(r item) string {
	counts := object(r, "sources")
	if counts == nil {
		return "store"
	}
	all := 0.0
	for _, n := range counts {
		f, _ := n.(float64)
		all += f
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if f, _ := counts[name].(float64); f >= all/200 { // the rest would read 0%
			parts = append(parts, fmt.Sprintf("%s %.0f%%", name, 100*f/all))
		}
	}
	return strings.Join(parts, ", ")
}

// numbers of a rule in one phrase.
func numbers(r item) string {
	mode := or(text(r, "mode"), "enforce")
	if mode == "block" || mode == "unlimited" {
		return mode
	}
	s := text(r, "capacity") + " tokens"
	if per := text(r, "refill_per_second"); per != "" {
		if period := or(text(r, "refill_period_seconds"), "1"); period == "1" {
			s += ", " + per + "/s"
		} else {
			s += ", " + per + " per " + period + " s"
		}
	}
	if a := text(r, "algorithm"); a != "" && a != "token_bucket" {
		s += ", " + a + " " + or(text(r, "window"), text(r, "window_seconds")+" s")
	}
	if cost := text(r, "max_cost"); cost != "" {
		s += ", at most " + cost + " each"
	}
	if mode != "enforce" {
		s += ", " + mode
	}
	return s
}

func asTexts(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func statusCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "How the rebalancer is, and who leads", Args: args(cobra.NoArgs),
		RunE: t.run(func(cmd *cobra.Command, _ []string, c *client) error {
			var s item
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("status")}, &s); err != nil {
				return err
			}
			return t.show(s, func() {
				fmt.Fprintf(t.out, "instance %s, version %s\nleader   %s\n", text(s, "instance"), text(s, "version"), or(text(s, "leader"), "none"))
				if c := object(s, "cycle"); c != nil {
					fmt.Fprintf(t.out, "cycle    %s of term %s, %s, %s: %s keys, %s changed, %s moves, %s s %s\n", text(c, "number"), text(c, "term"), ago(c, "at"),
						text(c, "cause"), text(c, "keys"), text(c, "changed"), text(c, "moves"), rate(c, "seconds"), text(c, "error"))
				}
				for _, r := range asTexts(s["not_ready"]) {
					fmt.Fprintln(t.out, "not ready:", r)
				}
			})
		}),
	}
}
