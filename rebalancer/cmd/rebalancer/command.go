package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/rebalancer/internal/sim"
	"partidor.dev/partidor/shared/health"
)

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

// command is the whole command line.
func command(args []string) *cobra.Command {
	var (
		path  string
		check bool
	)
	serve := func(cmd *cobra.Command, _ []string) error {
		o := app.Options{ConfigFile: path, Version: buildVersion()}
		if check {
			if err := app.Check(o); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), path+": ok")
			return nil
		}
		return app.Run(cmd.Context(), o)
	}
	root := &cobra.Command{
		Use: "rebalancer", Short: "Moves shares of limits among regions as the traffic moves",
		Version: buildVersion(), SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs, RunE: serve,
	}
	root.PersistentFlags().StringVar(&path, "config", "rebalancer.yaml", "path of the configuration")
	root.PersistentFlags().BoolVar(&check, "check-config", false, "judge the configuration and exit")
	root.AddCommand(
		&cobra.Command{Use: "serve", Short: "Run (also without a subcommand)", Args: cobra.NoArgs, RunE: serve},
		migrate(&path),
		&cobra.Command{Use: "healthy URL", Short: "Ask the rebalancer whose health check has this URL whether it lives", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return health.Ask(cmd.Context(), args[0]) }},
		sim.Command(),
	)
	root.SetArgs(twoDashes(args))
	return root
}

// twoDashes lets -config, -check-config and -version be written with one dash, as the gateway's are.
func twoDashes(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch name {
		case "-config", "-check-config", "-version":
			a = "-" + a
		}
		out[i] = a
	}
	return out
}

// migrate changes the schema of the database that the configuration names.
func migrate(path *string) *cobra.Command {
	url := ""
	cmd := &cobra.Command{Use: "migrate", Short: "Change the schema of the ledger"}
	cmd.PersistentFlags().StringVar(&url, "database-url", "", "database to migrate, instead of the configuration's")
	step := func(use, short string, run func(*app.Migration, *cobra.Command) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			m, err := app.OpenMigration(*path, url)
			if err != nil {
				return err
			}
			defer m.Close() //nolint:errcheck // nothing is left to be written
			return run(m, c)
		}})
	}
	step("up", "Apply all missing migrations", func(m *app.Migration, c *cobra.Command) error { return report(c.OutOrStdout(), m.Up(c.Context())) })
	step("down", "Take the newest migration back", func(m *app.Migration, c *cobra.Command) error { return report(c.OutOrStdout(), m.Down(c.Context())) })
	step("status", "List all migrations", func(m *app.Migration, c *cobra.Command) error { return report(c.OutOrStdout(), m.Status(c.Context())) })
	return cmd
}

func report(w io.Writer, lines app.Steps) error {
	if lines.Err != nil {
		return lines.Err
	}
	for _, l := range lines.List {
		fmt.Fprintln(w, l)
	}
	if len(lines.List) == 0 {
		fmt.Fprintln(w, "nothing to do")
	}
	return nil
}
