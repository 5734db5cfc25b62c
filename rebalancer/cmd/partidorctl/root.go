package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/rebalancer/internal/sim"
)

// tool is what all commands share.
type tool struct {
	connection
	out, err io.Writer
	in       io.Reader
	// terminal tells whether in is a person.
	terminal bool

	output string
	yes    bool
	dryRun bool
	reason string
}

// version is set by the linker; else the build's own knowledge counts.
var version string

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func newRoot(in io.Reader, out, errOut io.Writer) *cobra.Command {
	t := &tool{in: in, out: out, err: errOut, terminal: isTerminal(in)}
	root := &cobra.Command{
		Use:   "partidorctl",
		Short: "See and tune how regions share rate limits",
		Long: `partidorctl speaks to the admin API of a rebalancer.

The server is --server or PARTIDOR_SERVER, the token PARTIDOR_TOKEN or --token-file. Commands that change something show
the difference first and ask; --yes answers, --dry-run only shows. Shares are parts per million or percentages.

` + exitHelp,
		Version: buildVersion(), SilenceUsage: true, SilenceErrors: true,
	}
	server := os.Getenv("PARTIDOR_SERVER")
	if server == "" {
		server = "http://127.0.0.1:9180"
	}
	f := root.PersistentFlags()
	f.StringVar(&t.server, "server", server, "admin port of a rebalancer")
	f.StringVar(&t.tokenFile, "token-file", "", "file with the token, instead of PARTIDOR_TOKEN")
	f.StringVar(&t.caFile, "ca-file", "", "authority of the server's certificate")
	f.StringVar(&t.certFile, "cert-file", "", "our certificate, where the server asks for one")
	f.StringVar(&t.keyFile, "key-file", "", "key of --cert-file")
	f.DurationVar(&t.timeout, "timeout", 30*time.Second, "longest time a request may take")
	f.StringVarP(&t.output, "output", "o", "table", "table, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(rulesCommand(t), plansCommand(t), keysCommand(t), splitsCommand(t), rebalanceCommand(t), regionsCommand(t),
		explainCommand(t), shadowCommand(t), statusCommand(t), historyCommand(t), demandCommand(t), sim.Command())
	return root
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args(cobra.NoArgs)}
	c.AddCommand(commands...)
	return c
}

// args makes a wrong number of arguments a usage error.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// changing gives a command the flags of those that change something.
func (t *tool) changing(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&t.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&t.dryRun, "dry-run", false, "show the difference and change nothing")
	c.Flags().StringVar(&t.reason, "reason", "", "why, for the history")
	return c
}

// run opens the connection for a command.
func (t *tool) run(do func(cmd *cobra.Command, a []string, c *client) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, a []string) error {
		if err := t.checkOutput(); err != nil {
			return err
		}
		c, err := t.open()
		if err != nil {
			return err
		}
		if t.terminal { // to a person, and where it disturbs no output
			c.progress = func(items int) { fmt.Fprintf(t.err, "\r%d …", items) }
		}
		return do(cmd, a, c)
	}
}

// isTerminal tells whether a person sits at in.
func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
