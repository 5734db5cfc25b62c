package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary be the command itself.
func TestMain(m *testing.M) {
	if os.Getenv("GATEWAY_RUN_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func gateway(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "GATEWAY_RUN_MAIN=1")
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("rules.yaml", "revision: 1\n")
	good := file("good.yaml", "region: eu\nupstreams: {o: {targets: [{url: http://127.0.0.1:9}]}}\nroutes: [{id: r, path: /r, upstream: o}]\nrules: {file: rules.yaml}\n")
	away := file("away.yaml", "region: eu\nupstreams: {o: {targets: [{url: http://127.0.0.1:9}]}}\nroutes: [{id: r, path: /r, upstream: o}]\npostgres: {url: 'postgres://app@127.0.0.1:1/x'}\n")
	bad := file("bad.yaml", "region: eu\nlisten_adress: 127.0.0.1:80\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-h"}, 0, "-check-config"},
		{[]string{"-version"}, 0, `"version":`},
		{nil, 2, "usage"},
		{[]string{"-config", good, "extra"}, 2, "usage"},
		{[]string{"-config", good, "-check-config"}, 0, "valid"},
		{[]string{"-config", bad, "-check-config"}, 1, bad + ":2: listen_adress"},
		{[]string{"-config", away, "-check-config"}, 1, away + ":4: postgres.url: no rules to serve by"},
		{[]string{"-config", bad}, 1, bad + ":2: listen_adress"},
		{[]string{"-config", filepath.Join(dir, "none.yaml")}, 1, "none.yaml"},
	} {
		code, out := gateway(t, c.args...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("gateway %q: code %d, want %d; output %s", c.args, code, c.code, out)
		}
	}
}
