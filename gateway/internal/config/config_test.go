package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, text string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

const smallest = `region: eu
upstreams:
  orders:
    targets: [{url: "http://127.0.0.1:9000"}]
routes:
  - id: create-order
    methods: [POST]
    path: /orders
    upstream: orders
rules: {file: rules.yaml}
`

func TestExampleLoads(t *testing.T) {
	c, err := Load("testdata/gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := c.Routes[0]
	if r.ID != "create-order" || r.Path != "/orders" || !cmp.Equal(r.Methods, []string{"POST"}) || r.CostOrDefault() != 1 {
		t.Errorf("route is %+v", r)
	}
}

// Every section of the reference is read, so its documentation cannot drift from the types.
func TestReferenceLoads(t *testing.T) {
	c, err := Load("testdata/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Addresses.Guard.Requests != 600 || c.Routes[1].Retry.Attempts != 3 || c.Upstreams["stock"].Protocol != ProtocolH2C {
		t.Errorf("reference was not read: %+v", c)
	}
}

func TestZeroValuesAreUseful(t *testing.T) {
	c, err := load(t, smallest)
	if err != nil {
		t.Fatal(err)
	}
	if c.Decision.Deadline != 5*time.Millisecond || c.Decision.Default != (DefaultRule{20, 10, 1}) || c.Store != StoreRedis ||
		c.Admin.Listen != "127.0.0.1:9090" || c.Identity.Header != "X-Api-Key" || c.Instance == "" {
		t.Errorf("defaults: %+v", c)
	}
}

// A bad file is refused as a whole, each fault with file, line and field.
func TestRefused(t *testing.T) {
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"misspelt field", "upstream: orders\n", "upsteram: orders\n", []string{":9:", "upsteram", "upstream"}},
		{"unknown section", "rules:", "ruels: 1\nrules:", []string{":10:", "ruels"}},
		{"route to nowhere", "upstream: orders\n", "upstream: order\n", []string{":9:", "routes[0].upstream", `"order"`}},
		{"negative cost", "path: /orders", "path: /orders\n    cost: -1", []string{":9:", "routes[0].cost", "-1"}},
		{"a length that is not the answer's", "path: /orders", "path: /orders\n    response_headers: {set: {content-length: \"5\"}}", []string{":9:", "routes[0].response_headers.set.content-length", "framing"}},
		{"a host among the headers", "path: /orders", "path: /orders\n    request_headers: {set: {Host: a}}", []string{":9:", "routes[0].request_headers.set.Host", "rewrite.host"}},
		{"no region", "region: eu", "", []string{"region: must not be empty"}},
		{"region with a dot", "region: eu", "region: eu.west", []string{":1:", "region", "eu.west"}},
		{"admin port in the open", "region: eu", "region: eu\nadmin: {listen: \"0.0.0.0:9090\"}", []string{":2:", "admin.listen", "loopback"}},
		{"admin port is the data port", "region: eu", "region: eu\nadmin: {listen: \"127.0.0.1:8080\"}", []string{"admin.listen", "data port"}},
		{"password in the file", "rules: {file: rules.yaml}", "postgres: {url: \"postgres://app:secret@db/app\"}", []string{":10:", "postgres.url", "url_file or url_env"}},
		{"rules from two places", "rules:", "postgres: {url: \"postgres://app@db/app\"}\nrules:", []string{"rules.file", "not both"}},
		{"no rules at all", "rules: {file: rules.yaml}", "", []string{"rules.file", "must come from"}},
		{"bare duration", "region: eu", "region: eu\ndecision: {deadline: 5}", []string{":2:", "decision.deadline", "unit"}},
		{"endless deadline", "region: eu", "region: eu\ndecision: {deadline: 5s}", []string{":2:", "decision.deadline", "at most 1s"}},
		{"default rule of zero", "region: eu", "region: eu\ndecision: {default: {capacity: 0, refill_per_second: 1}}", []string{":2:", "decision.default", "mode: block"}},
		{"two routes with one id", "rules:", "  - {id: create-order, path: /x, upstream: orders}\nrules:", []string{":10:", "routes[1].id", "routes[0]"}},
		{"two default routes", "rules:", "  - {id: a, default: true, upstream: orders}\n  - {id: b, default: true, upstream: orders}\nrules:", []string{"routes", "at most one"}},
		{"memory store with nats", "rules:", "store: memory\nnats: {urls: [\"nats://127.0.0.1:4222\"]}\nrules:", []string{":10:", "store"}},
		{"target without scheme", "http://127.0.0.1:9000", "127.0.0.1:9000", []string{":4:", "upstreams.orders.targets[0].url"}},
		{"trusted proxy with host bits", "rules:", "addresses: {trusted_proxies: [10.0.0.1/8]}\nrules:", []string{":10:", "addresses.trusted_proxies[0]", "10.0.0.0/8"}},
		{"lower-case method", "methods: [POST]", "methods: [post]", []string{":7:", "routes[0].methods[0]"}},
		{"a header of the gateway's own", "rules:", "server: {pass_headers: [x-forwarded-for]}\nrules:", []string{":10:", "pass_headers[0]", "X-Forwarded-For"}},
		{"twin of an address header", "rules:", "server: {underscore_headers: [X_Real_IP]}\nrules:", []string{":10:", "underscore_headers[0]", "X-Real-IP"}},
		{"twin of the tenant header", "rules:", "server: {underscore_headers: [X_Tenant_Id]}\nrules:", []string{":10:", "underscore_headers[0]", "X-Tenant-Id"}},
		{"path twice", "path: /orders", "path: /orders\n    path: /order", []string{":9:", "path"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(smallest, tt.old, tt.new, 1)
			if text == smallest {
				t.Fatal("the case changes nothing")
			}
			_, err := load(t, text)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range append(tt.want, "gateway.yaml") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// All faults are told at once.
func TestEveryFaultIsTold(t *testing.T) {
	_, err := load(t, strings.NewReplacer("region: eu", "region: EU", "upstream: orders\n", "upstream: x\n", "/orders", "orders").Replace(smallest))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"region", "routes[0].upstream", "routes[0].path"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func TestNeedsRestart(t *testing.T) {
	running, err := load(t, smallest)
	if err != nil {
		t.Fatal(err)
	}
	next, err := load(t, strings.Replace(smallest, "path: /orders", "path: /v2/orders", 1)+"redis: {db: 3}\nserver: {underscore_headers: [x_y], pass_headers: [X-Forwarded-Port], idle_timeout: 1s}\n")
	if err != nil {
		t.Fatal(err)
	}
	next.Rules = running.Rules // the two files stand in directories of their own
	if d := cmp.Diff([]string{"server", "redis"}, NeedsRestart(running, next)); d != "" {
		t.Error(d)
	}
	next.Server, next.Redis = running.Server, running.Redis
	if got := NeedsRestart(running, next); got != nil {
		t.Errorf("%v", got)
	}
}
