package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
)

// scarce starts a gateway with rules from a file, a Redis and nothing else, by a shell that runs limits first. More lines of
// configuration may follow.
func scarce(t *testing.T, limits, config string, env ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rules := write("rules.yaml", "regions: {eu: 100%}\nrules:\n- {tenant: a, route: create-order, capacity: 100000, refill_per_second: 100000}\n")
	path := write("gateway.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
region: eu
identity: {mode: header}
upstreams:
  orders: {targets: [{url: %q}]}
routes:
  - {id: create-order, methods: [POST], path: /orders, upstream: orders}
redis: {addresses: [%q]}
rules: {file: %q}
%s`, upstream.URL, testenv.StartRedis(t).Addr, rules, config))
	g := &gateway{Program: testenv.StartProgram(t, []string{"sh", "-c", limits + `exec "$0" "$@"`, program("gateway"), "-config", path}, env...)}
	var at struct{ Listen, Admin string }
	g.AwaitLine(patient, says("serving", &at))
	g.url, g.admin = "http://"+at.Listen, "http://"+at.Admin
	return g
}

// by sends one order for tenant a and tells whether it was let through.
func (g *gateway) by(client *http.Client, tenant string) error {
	req, err := request(context.Background(), g.url, "")
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", tenant)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	return nil
}

// lines counts the lines of output that hold text.
func (g *gateway) lines(text string) (n int) {
	for _, line := range g.Lines() {
		if bytes.Contains(line, []byte(text)) {
			n++
		}
	}
	return n
}

// TestFileDescriptorsExhausted: clients hold every connection that there can be. Who is connected is served, who is not waits, one
// line says why, and all is well when they leave.
func TestFileDescriptorsExhausted(t *testing.T) {
	g := scarce(t, "ulimit -n 64; ", "")
	connected := &http.Client{Timeout: patient, Transport: &http.Transport{}}
	if err := g.by(connected, "a"); err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for range 128 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(g.url, "http://"), patient)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	g.AwaitLine(patient, func(line []byte) bool { return bytes.Contains(line, []byte("no file descriptor is left")) })
	for range 20 {
		if err := g.by(connected, "a"); err != nil {
			t.Fatalf("a client that is connected: %v", err)
		}
	}
	for _, c := range idle {
		c.Close()
	}
	idle = nil
	testenv.Eventually(t, patient, func() error {
		return g.by(&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, "a")
	})
	if n := g.lines("no file descriptor is left"); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, g.Output())
	}
}

// TestDiskFull: no decision can be logged. Requests go on, and one line says so.
func TestDiskFull(t *testing.T) {
	g := scarce(t, "", "decision: {deadline: 500ms, log: {file: /dev/full}}\n")
	for range 50 {
		if err := g.by(http.DefaultClient, "a"); err != nil {
			t.Fatal(err)
		}
	}
	const want = "decisions cannot be logged; requests go on"
	g.AwaitLine(patient, says(want, nil))
	for range 50 {
		if err := g.by(http.DefaultClient, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.lines(want); n != 1 || g.lines("no space left on device") != 1 {
		t.Errorf("%d lines, want one that names the reason:\n%s", n, g.Output())
	}
}

// TestMemoryLimit: thousands of tenants that nobody knows, in a process with little memory: all are served, and it stays as small.
func TestMemoryLimit(t *testing.T) {
	g := scarce(t, "", "", "GOMEMLIMIT=48MiB")
	used := func() float64 {
		resp, err := http.Get(g.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "process_resident_memory_bytes") {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		t.Fatalf("no memory is told:\n%s", text.String())
		return 0
	}
	for i := range 2000 {
		if err := g.by(http.DefaultClient, "tenant-"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if mib := used() / (1 << 20); mib > 160 { // the program itself and what the limit does not count
		t.Errorf("%.0f MiB are used", mib)
	}
}
