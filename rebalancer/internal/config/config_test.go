package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/config"
)

func load(t *testing.T, text string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rebalancer.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := new(Config)
	return c, config.Load(path, c)
}

const least = "postgres: {url: postgres://app@127.0.0.1/partidor}\nnats: {urls: [\"nats://127.0.0.1:4222\"]}\n"

func TestLeastConfiguration(t *testing.T) {
	c, err := load(t, least)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:9180" || c.Instance == "" || c.Postgres.MaxConnections != 8 {
		t.Errorf("defaults %+v", c)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown field", least + "litsen: x\n", "rebalancer.yaml:3"},
		{"no ledger", "nats: {urls: [\"nats://h:1\"]}\n", "postgres"},
		{"two ledgers", least + "rules_file: r.yaml\n", "rebalancer.yaml:3: rules_file: give postgres or rules_file"},
		{"password", "postgres: {url: postgres://a:b@h/d}\nnats: {urls: [\"nats://h:1\"]}\n", "yaml:1: postgres.url: must not hold a password"},
		{"no nats", "postgres: {url: postgres://h/d}\n", "nats.urls: at least one is needed"},
		{"open to the world", least + "listen: 0.0.0.0:9180\n", "access.tokens: needed"},
		{"anonymous to the world", least + "listen: 0.0.0.0:9180\naccess: {anonymous: viewer}\n", "access.anonymous: only where listen is a loopback"},
		{"role", least + "access:\n  tokens:\n    - {name: a, role: root, token_env: X}\n", "yaml:5: access.tokens[0].role"},
		{"two sources", least + "access:\n  tokens:\n    - {name: a, role: viewer, token_env: X, token_file: y}\n", "yaml:5: access.tokens[0]: give exactly one"},
		{"parameter", least + "parameters:\n  floor: 5%\n  cycle: 1s\n", "yaml:5: parameters.cycle: 1s, must be from 10s"},
		{"unknown parameter", least + "parameters: {cycel: 30s}\n", "yaml:3: parameters.cycel: no such parameter"},
		{"lease", least + "lease: {duration: 10s}\n", "yaml:3: lease.duration: 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want it to hold %q", err, c.want)
			}
		})
	}
}
