package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaries is where TestMain puts the programs.
var binaries string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if binaries, err = os.MkdirTemp("", "partidor-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(binaries)
	cmd := exec.Command("go", "build", "-o", binaries+string(filepath.Separator),
		"partidor.dev/partidor/gateway/cmd/gateway", "partidor.dev/partidor/rebalancer/cmd/rebalancer", "github.com/nats-io/nats-server/v2")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	// go build names a program after the last element of its path, be it a version.
	if _, err := os.Stat(program("v2")); err == nil {
		if err := os.Rename(program("v2"), program("nats-server")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func program(name string) string { return filepath.Join(binaries, name) }
