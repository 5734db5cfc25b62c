package nats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"

	"partidor.dev/partidor/deploy/internal/keys"
	"partidor.dev/partidor/shared/wire"
)

// The chart's servers are those of the shipped files: what it renders for its examples, which `make chart-test` keeps, holds every
// user to what his program says and hears, in regions that no shipped file names as well.
func TestChartHoldsUsersToTheSame(t *testing.T) {
	dir := t.TempDir()
	if err := keys.Make(keys.Plan{Dir: dir, Regions: []string{"ap-south"}}, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		example, server string
		want            map[string]wire.Permissions // by the public key in the example
	}{
		{"hub", "hub", map[string]wire.Permissions{
			"UBAOHCT6S373S3SL6JYQ7YUIV3G7UVC6V6D4ZKYEYUWB6ZFMVAWM755K": wire.RebalancerPermissions(),
			"UCA4Z3YETJOHACJAHD27IIAPZNGW77HORMT3ZD7V4B6CB4XSIFD4U2VH": leafOf("eu"),
			"UC7ZINI6C7PQIARZWBYNHIHIVNMQ7Z6UIKYLSKS5IQACPNAZ7OZGV4IU": leafOf("ap-south"),
		}},
		{"leaf", "ap-south", map[string]wire.Permissions{
			"UCX7QJBF4V5LJMEKWERHRLC2UWAPPSN45RV7ESOU2IAMQECKCDL53OCM": wire.GatewayPermissions("ap-south"),
		}},
	} {
		conf, env := rendered(t, "../helm/partidor/ci/golden/"+c.example+".golden")
		for name, value := range env {
			t.Setenv(name, value)
		}
		at := func(name string) string { return filepath.Join(dir, name) }
		conf = strings.NewReplacer("/run/secrets/nats/tls.crt", at("nats-"+c.server+".crt"), "/run/secrets/nats/tls.key", at("nats-"+c.server+".key"),
			"/run/secrets/nats/ca.crt", at("ca.crt"), "include leaf.conf", "include leaf-"+c.server+".conf").Replace(conf)
		if err := os.WriteFile(at(c.example+".conf"), []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := server.ProcessConfigFile(at(c.example + ".conf"))
		if err != nil {
			t.Errorf("%s: %v", c.example, err)
			continue
		}
		if o.TLSConfig == nil || len(o.Nkeys) != len(c.want) {
			t.Errorf("%s: TLS %v, %d users, want %d", c.example, o.TLSConfig != nil, len(o.Nkeys), len(c.want))
		}
		for _, user := range o.Nkeys {
			want, ok := c.want[user.Nkey]
			if !ok {
				t.Errorf("%s lets %s in", c.example, user.Nkey)
				continue
			}
			p := user.Permissions
			same(t, c.example+" "+user.Nkey+" publish", p.Publish.Allow, want.Publish)
			same(t, c.example+" "+user.Nkey+" subscribe", p.Subscribe.Allow, want.Subscribe)
			if want.Responses != (p.Response != nil) {
				t.Errorf("%s %s: responses %v", c.example, user.Nkey, p.Response)
			}
		}
	}
}

// leafOf is what a region's server may pass on. It has no right to answer of its own: the name of a reply, which nobody can guess, is
// what guards it.
func leafOf(region string) wire.Permissions {
	p := wire.GatewayPermissions(region)
	p.Publish, p.Responses = append(p.Publish, "_INBOX.*.>"), false
	return p
}

// rendered are the server's file and its environment as the chart rendered them.
func rendered(t *testing.T, path string) (conf string, env map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env = map[string]string{}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Data     map[string]string
			Spec     struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Name string
							Env  []struct{ Name, Value string }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			continue // of another shape: none of ours
		}
		if text := o.Data["nats.conf"]; text != "" {
			conf = text
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				if c.Name == "nats" {
					env[e.Name] = e.Value
				}
			}
		}
	}
	if conf == "" {
		t.Fatalf("%s has no nats.conf", path)
	}
	return conf, env
}
