package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func keysCommand(t *tool) *cobra.Command {
	return group("keys", "API keys of tenants", keysList(t), keysCreate(t), keysRotate(t), keysRevoke(t))
}

func keysList(t *tool) *cobra.Command {
	limit := 100
	c := &cobra.Command{
		Use: "list [TENANT]", Short: "Keys by their digests; the keys themselves are not known", Args: args(cobra.MaximumNArgs(1)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			q := url.Values{}
			if len(a) > 0 {
				q.Set("tenant", a[0])
			}
			items, more, err := c.list(cmd.Context(), path("keys"), q, limit)
			if err != nil {
				return err
			}
			t.more(more, limit)
			return t.show(items, func() {
				rows := make([][]string, len(items))
				for i, k := range items {
					rows[i] = []string{text(k, "tenant"), text(k, "label"), text(k, "enabled"), or(text(k, "expires_at"), "-"), ago(k, "created_at"), text(k, "sha256")}
				}
				t.table("TENANT LABEL ENABLED EXPIRES CREATED SHA256", rows)
			})
		}),
	}
	c.Flags().IntVar(&limit, "limit", limit, "at most so many; 0 for all")
	return c
}

func keysCreate(t *tool) *cobra.Command {
	label, length := "", time.Duration(0)
	c := &cobra.Command{
		Use: "create TENANT", Short: "Make a key; it is shown this once", Args: args(cobra.ExactArgs(1)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			body := item{"tenant": a[0], "label": label, "reason": t.reason}
			if length < 0 {
				return usageError{errors.New("--for: must not be negative")}
			}
			if length > 0 {
				body["expires_at"] = time.Now().Add(length).UTC().Format(time.RFC3339)
			}
			return t.newKey(cmd, c, "a new key of "+a[0], call{method: http.MethodPost, path: path("keys"), body: body})
		}),
	}
	c.Flags().StringVar(&label, "label", "", "who uses it")
	c.Flags().DurationVar(&length, "for", 0, "how long it is valid; without an end by default")
	return t.changing(c)
}

func keysRotate(t *tool) *cobra.Command {
	grace := 24 * time.Hour
	c := &cobra.Command{
		Use: "rotate SHA256", Short: "Make a successor; the old key goes on for --grace", Args: args(cobra.ExactArgs(1)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.newKey(cmd, c, "a successor of "+a[0],
				call{method: http.MethodPost, path: path("keys", a[0], "rotate"), body: item{"grace_seconds": int64(grace / time.Second), "reason": t.reason}})
		}),
	}
	c.Flags().DurationVar(&grace, "grace", grace, "how long the old key goes on")
	return t.changing(c)
}

// newKey shows the key on the output alone, so that it can be piped; everything else is said beside it.
func (t *tool) newKey(cmd *cobra.Command, c *client, what string, r call) error {
	trial := r
	trial.query = url.Values{"dry_run": {"true"}}
	var made item
	if err := c.do(cmd.Context(), trial, &made); err != nil {
		return err
	}
	fmt.Fprintln(t.err, what+", label "+or(text(made, "label"), "none")+", expires "+or(text(made, "expires_at"), "never"))
	if t.dryRun {
		return nil
	}
	if err := t.confirm(); err != nil {
		return err
	}
	if err := c.do(cmd.Context(), r, &made); err != nil {
		return err
	}
	return t.show(made, func() {
		fmt.Fprintln(t.err, "sha256 "+text(made, "sha256")+"; the key is shown this once:")
		fmt.Fprintln(t.out, text(made, "key"))
	})
}

func keysRevoke(t *tool) *cobra.Command {
	return t.changing(&cobra.Command{
		Use: "revoke SHA256", Short: "End a key at once and for good", Args: args(cobra.ExactArgs(1)),
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			return t.change(cmd.Context(), c, "key "+a[0], call{method: http.MethodDelete, path: path("keys", a[0]), query: t.reasonQuery()})
		}),
	})
}
