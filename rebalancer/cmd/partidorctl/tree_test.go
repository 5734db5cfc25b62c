package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// looks are the words that only look, or change nothing that could be shown first.
var looks = []string{"get", "diff", "export", "import", "history", "list", "tenants", "show", "plan", "run", "params", "explain", "status", "voters", "demand",
	"simulate", "completion", "bash", "zsh", "fish", "powershell", "help"}

// Every verb is either one that looks or one that shows the difference first, and says so by its flags; each has help.
func TestEveryChangingVerbCanBeTriedAnsweredAndExplained(t *testing.T) {
	var out bytes.Buffer
	root := newRoot(strings.NewReader(""), &out, &out)
	root.InitDefaultCompletionCmd()
	verbs := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.Runnable() {
			return
		}
		verbs++
		if c.Short == "" {
			t.Errorf("%s has no help", c.CommandPath())
		}
		changes := true
		for _, word := range looks {
			changes = changes && c.Name() != word
		}
		for _, flag := range []string{"yes", "dry-run", "reason"} {
			if has := c.Flags().Lookup(flag) != nil; has != changes {
				t.Errorf("%s: --%s is there: %v, want %v", c.CommandPath(), flag, has, changes)
			}
		}
	}
	walk(root)
	if verbs < 40 {
		t.Errorf("only %d verbs were looked at", verbs)
	}
}
