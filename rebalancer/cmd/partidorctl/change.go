package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// difference is a change as the server answers it.
type difference struct {
	Before item `json:"before,omitempty"`
	After  item `json:"after,omitempty"`
}

// stamps say who changed a thing and when; they differ after every change.
var stamps = []string{"id", "revision", "updated_at", "updated_by", "reason"}

// change makes a change as careful people do: it lets the server try, shows the difference, asks, and then demands that
// what was shown is still what is there.
func (t *tool) change(ctx context.Context, c *client, what string, r call) error {
	if r.query == nil {
		r.query = url.Values{}
	}
	trial := r
	trial.query = url.Values{"dry_run": {"true"}}
	maps.Copy(trial.query, r.query)
	var d difference
	if err := c.do(ctx, trial, &d); err != nil {
		return err
	}
	lines := d.lines()
	if t.dryRun {
		return t.show(d, func() { t.print(what, lines) })
	}
	if t.output == "table" || t.terminal {
		t.print(what, lines)
	}
	if len(lines) == 0 {
		return nil
	}
	if err := t.confirm(); err != nil {
		return err
	}
	switch revision := text(d.Before, "revision"); {
	case revision != "":
		r.match = revision
	case d.Before == nil && d.After != nil && d.After["revision"] != nil:
		r.absent = true
	}
	var done difference
	if err := c.do(ctx, r, &done); err != nil {
		return err
	}
	return t.show(done, func() { fmt.Fprintln(t.err, "done") })
}

func (t *tool) print(what string, lines []string) {
	if len(lines) == 0 {
		fmt.Fprintln(t.out, what+": no change")
		return
	}
	fmt.Fprintln(t.out, what+":")
	for _, l := range lines {
		fmt.Fprintln(t.out, "  "+l)
	}
}

// confirm asks, unless --yes has answered. Without a person to ask, the answer is no.
func (t *tool) confirm() error {
	if t.yes {
		return nil
	}
	if !t.terminal {
		return usageError{fmt.Errorf("nobody to ask: say --yes to change it, or --dry-run to only look")}
	}
	fmt.Fprint(t.err, "Change it? [y/N] ")
	answer, _ := bufio.NewReader(t.in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errDeclined
	}
	return nil
}

// lines are the fields that differ: "+ name: value", "- name: value", "~ name: old -> new". None means no change.
func (d *difference) lines() (out []string) {
	names := slices.Collect(maps.Keys(d.Before))
	for name := range d.After {
		if _, both := d.Before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(stamps, name) {
			continue
		}
		before, after := text(d.Before, name), text(d.After, name)
		switch {
		case before == after:
		case before == "":
			out = append(out, "+ "+name+": "+after)
		case after == "":
			out = append(out, "- "+name+": "+before)
		default:
			out = append(out, "~ "+name+": "+before+" -> "+after)
		}
	}
	return out
}
