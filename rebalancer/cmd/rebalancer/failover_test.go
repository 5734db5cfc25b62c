package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
)

// node is one rebalancer as a process of its own.
type node struct {
	name, url string
	cmd       *exec.Cmd
}

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "rebalancer")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

func start(t *testing.T, binary, name, database, natsURL string) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // free for the process
	file := filepath.Join(t.TempDir(), name+".yaml")
	config := fmt.Sprintf("listen: %s\ninstance: %s\npostgres: {url: \"%s\"}\nnats: {urls: [\"%s\"]}\naccess: {anonymous: viewer}\n", address, name, database, natsURL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &node{name: name, url: "http://" + address, cmd: exec.Command(binary, "-config", file)}
	var log bytes.Buffer
	n.cmd.Stderr = &log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.cmd.Process.Signal(syscall.SIGCONT)
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, log.String())
		}
	})
	return n
}

// leads asks the process itself; one that does not answer does not say so.
func (n *node) leads() bool {
	c := http.Client{Timeout: 500 * time.Millisecond}
	res, err := c.Get(n.url + "/v1/status")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var s struct{ Leading bool }
	data, err := io.ReadAll(res.Body)
	return err == nil && json.Unmarshal(data, &s) == nil && s.Leading
}

// within waits until ok and tells how long that took.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(begin) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(begin)
}

// TestKilledAndStoppedLeaders is case request-path 95 with real processes: kill -9, and SIGSTOP past the lease.
func TestKilledAndStoppedLeaders(t *testing.T) {
	pg, nats := testenv.StartPostgres(t), natsenv.Start(t)
	m, err := app.OpenMigration("", pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // nothing is left to be written
	if s := m.Up(t.Context()); s.Err != nil {
		t.Fatal(s.Err)
	}
	db := pg.Conn(t)
	term := func() (term int64) {
		if err := db.QueryRow(t.Context(), `SELECT term FROM leader`).Scan(&term); err != nil {
			t.Fatal(err)
		}
		return term
	}
	binary := build(t)
	one := start(t, binary, "one", pg.URL, nats.URL)
	within(t, 20*time.Second, "one leads", one.leads)
	two := start(t, binary, "two", pg.URL, nats.URL)
	within(t, 20*time.Second, "two is up", func() bool {
		res, err := http.Get(two.url + "/readyz") //nolint:noctx // a test
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	first := term()

	if err := one.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Five seconds are the promise; the rest is for a machine that is busy with other tests.
	took := within(t, 10*time.Second, "two takes over from a stopped leader", two.leads)
	t.Logf("take-over from a stopped leader after %v", took)
	second := term()
	if second <= first {
		t.Errorf("term %d after %d", second, first)
	}
	if err := one.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "the resumed leader sees that its time is over", func() bool {
		res, err := http.Get(one.url + "/v1/status") //nolint:noctx // a test
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return !one.leads()
	})
	if !two.leads() || term() != second {
		t.Errorf("the resumed leader disturbed the new one: term %d, want %d", term(), second)
	}

	if err := two.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took = within(t, 10*time.Second, "one takes over from a killed leader", one.leads)
	t.Logf("take-over from a killed leader after %v", took)
}
