package compose_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"partidor.dev/partidor/deploy/internal/keys"
)

// project makes the secrets that day one makes, in a copy of the deployment's files, and loads compose.yaml as Compose does: against its
// schema, with every name resolved.
func project(t *testing.T) *types.Project {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"compose", "docker", "redis", "nats", "postgres", "otel", "prometheus", "grafana"} {
		if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(filepath.Join("..", dir))); err != nil { // opened here, so that a change is a new test
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "compose")
	acl, err := os.ReadFile("../redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	plan := keys.Plan{Dir: filepath.Join(dir, "secrets"), Regions: []string{"eu", "us"}, Postgres: "postgres:5432", Hosts: []string{"127.0.0.1"},
		Options: "sslmode=verify-full&sslrootcert=/run/secrets/ca.crt"}
	if err := keys.Make(plan, string(acl)); err != nil {
		t.Fatal(err)
	}
	o, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithWorkingDirectory(dir), cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What stands in the issue is there, nothing is reachable from outside the machine, and every file that is mounted exists.
func TestComposition(t *testing.T) {
	p := project(t)
	for _, name := range []string{"redis-eu", "redis-us", "nats-hub", "nats-eu", "nats-us", "postgres", "migrate", "rebalancer", "regions", "rules",
		"gateway-eu-1", "gateway-eu-2", "gateway-us-1", "gateway-us-2", "otel-collector", "prometheus", "grafana", "jaeger"} {
		if _, err := p.GetService(name); err != nil {
			t.Error(err)
		}
	}
	used := map[string]bool{}
	for name, s := range p.Services {
		if s.Build == nil && (strings.HasSuffix(s.Image, ":latest") || !strings.Contains(s.Image, ":")) {
			t.Errorf("%s: image %s has no version", name, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the network", name, port.Published)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !v.ReadOnly {
				t.Errorf("%s may write %s", name, v.Source)
			}
		}
		for _, secret := range s.Secrets {
			used[secret.Source] = true
			if _, err := os.Stat(p.Secrets[secret.Source].File); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, arg := range slices.Concat(s.Command, s.Entrypoint) {
			if strings.Contains(arg, "password=") {
				t.Errorf("%s: a password on a command line: %s", name, arg)
			}
		}
	}
	for name := range p.Secrets {
		if !used[name] {
			t.Errorf("secret %s is used by nobody", name)
		}
	}
	// Whoever has one gateway has its region's secrets, and nothing of the control plane or of the other region.
	for name, s := range p.Services {
		if region, ok := strings.CutPrefix(name, "gateway-"); ok {
			region = region[:2]
			for _, secret := range s.Secrets {
				for _, foreign := range []string{"rebalancer", "owner", "operator", "sre", ".key", map[string]string{"eu": "us", "us": "eu"}[region]} {
					if strings.Contains(strings.NewReplacer(".crt", "", ".acl", "").Replace(secret.Source), "-"+foreign+".") || strings.HasPrefix(secret.Source, foreign) {
						t.Errorf("%s holds %s", name, secret.Source)
					}
				}
			}
		}
	}
}
