package app_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/shared/testenv"
)

// PostgreSQL away at start: the saved snapshot serves, ready but degraded with "stale rules"; without a snapshot the
// gateway is not ready and serves nothing, unlimited or not (request-path 85).
func TestPostgresAwayAtStart(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 2, 1, 3600)
	saved := "\nsnapshot: {file: " + filepath.Join(t.TempDir(), "snapshot") + "}\n"
	start(t, s.config+saved).stop()

	away := strings.Replace(s.config, s.postgres.URL, "postgres://app@127.0.0.1:1/nowhere", 1)
	g := start(t, away+saved)
	status, ready := g.ready()
	if status != http.StatusOK || ready.Status != "degraded" || len(ready.Reasons) != 1 || ready.Reasons[0].Reason != "stale rules" {
		t.Errorf("readiness with a saved snapshot: %d %+v", status, ready)
	}
	if r := g.post("shop-a"); r.StatusCode != http.StatusOK || r.Header.Get("X-RateLimit-Limit") != "2" {
		t.Errorf("status %d limit %q, want 200 by the saved rule", r.StatusCode, r.Header.Get("X-RateLimit-Limit"))
	}
	if v := g.metric("partidor_snapshot_stale"); v != 1 {
		t.Errorf("partidor_snapshot_stale %v, want 1", v)
	}
	g.stop()

	g = start(t, away)
	status, ready = g.ready()
	if status != http.StatusServiceUnavailable || ready.Status != "not ready" || ready.Reasons[0].Reason != "no rules" {
		t.Errorf("readiness without a snapshot: %d %+v", status, ready)
	}
	if r := g.post("shop-a"); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d without rules, want 503", r.StatusCode)
	}
	if resp, err := http.Get(g.Admin + "/healthz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a gateway without rules is alive all the same: %v", err)
	}
}

// The database comes up after the gateway: it becomes ready by itself.
func TestPostgresComesLater(t *testing.T) {
	server := testenv.StartPostgresServer(t)
	pg := server.Database(t)
	s := newSet(t)
	server.Stop()
	g := start(t, strings.Replace(s.config, s.postgres.URL, pg.URL, 1))
	if status, _ := g.ready(); status != http.StatusServiceUnavailable {
		t.Errorf("ready without rules: %d", status)
	}
	server.Restart(t)
	s.postgres, s.ledger = pg, pg.Conn(t)
	migrate(t, s)
	s.shop(t, "shop-a")
	eventually(t, 10*time.Second, "the gateway is ready", func() bool {
		status, _ := g.ready()
		return status == http.StatusOK && g.post("shop-a").StatusCode == http.StatusOK
	})
}

// NATS and Redis are away: requests go on, readiness says so, and both are found again.
func TestServersAwayAndBack(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1000, 1000, 1)
	g := start(t, s.config)
	g.post("shop-a")
	s.redis.Kill()
	s.nats.Stop()
	reasons := func() string {
		_, ready := g.ready()
		var all []string
		for _, r := range ready.Reasons {
			all = append(all, r.Reason)
		}
		return strings.Join(all, ", ")
	}
	eventually(t, 10*time.Second, "both are missed, requests go on", func() bool {
		if r := g.post("shop-a"); r.StatusCode != http.StatusOK {
			t.Fatalf("status %d while Redis and NATS are away, want 200", r.StatusCode)
		}
		return reasons() == "redis away, nats away"
	})
	s.redis.Restart()
	s.nats.Restart()
	eventually(t, 15*time.Second, "both are back", func() bool {
		g.post("shop-a")
		return reasons() == ""
	})
}

// On the way down: not ready at once, requests in flight end well, nothing is left running.
func TestDrain(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	ignore := goleak.IgnoreCurrent()
	g := start(t, s.config+"\nserver: {drain_delay: 300ms, drain_timeout: 10s}\n")
	answer := make(chan int, 1)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	go func() {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, g.URL+"/orders", http.NoBody)
		req.Header.Set("X-Api-Key", "shop-a")
		req.Header.Set("X-Wait", "1s")
		resp, err := client.Do(req)
		if err != nil {
			answer <- -1
			return
		}
		_ = resp.Body.Close()
		answer <- resp.StatusCode
	}()
	eventually(t, 5*time.Second, "the request is under way", func() bool { return len(s.redis.Client().Keys(t.Context(), "rl:{*").Val()) == 1 })
	g.cancel()
	eventually(t, time.Second, "not ready while draining", func() bool {
		status, ready := g.ready()
		return status == http.StatusServiceUnavailable && ready.Reasons[0].Reason == "draining"
	})
	if status := <-answer; status != http.StatusOK {
		t.Errorf("the request in flight got %d, want 200", status)
	}
	g.stop()
	if conn, err := http.Get(g.URL + "/orders"); err == nil {
		t.Errorf("still accepting after the stop: %d", conn.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, ignore)
}

// A rules file is enough: no PostgreSQL, no NATS. It is watched; a file with a mistake changes nothing.
func TestRulesFile(t *testing.T) {
	s := newSet(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	write := func(text string) { // as an editor does: a new file in the old one's place
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(revision, capacity string) string {
		return "revision: " + revision + "\nregions: {eu: 50%, us: 50%}\nrules: [{tenant: shop-a, route: create-order, capacity: " + capacity +
			", refill_per_second: 1}]\ntenants: [{id: shop-a}]\napi_keys: [{tenant: shop-a, key: shop-a}]\n"
	}
	write(rules("1", "10"))
	config := s.config[:strings.Index(s.config, "nats:")] + "rules: {file: " + file + "}\n"
	g := start(t, config)
	limitIs := func(n string) func() bool {
		return func() bool { return g.post("shop-a").Header.Get("X-RateLimit-Limit") == n }
	}
	if !limitIs("10")() {
		t.Error("the file's rule is not in force")
	}
	write(rules("2", "20"))
	eventually(t, propagation, "the second revision is in force", limitIs("20"))
	write(rules("3", "-1"))
	eventually(t, propagation, "the mistake is told", func() bool {
		_, ready := g.ready()
		return len(ready.Reasons) == 1 && strings.Contains(ready.Reasons[0].Detail, "capacity")
	})
	if !limitIs("20")() {
		t.Error("a file with a mistake has changed the rules")
	}
	write(rules("1", "30"))
	eventually(t, propagation, "the older revision is told", func() bool {
		_, ready := g.ready()
		return len(ready.Reasons) == 1 && strings.Contains(ready.Reasons[0].Detail, "revision")
	})
	write(rules("4", "40"))
	eventually(t, propagation, "the corrected file is in force", limitIs("40"))
}

// What start refuses, -check-config refuses with the same words, naming file, line and field.
func TestCheckRefusesWhatStartRefuses(t *testing.T) {
	dir := t.TempDir()
	const good = `
region: eu
upstreams: {orders: {targets: [{url: "http://127.0.0.1:9"}]}}
routes:
  - {id: create-order, path: /orders, upstream: orders}
redis: {addresses: ["127.0.0.1:9"]}
rules: {file: RULES}
`
	for name, c := range map[string]struct{ config, rules, want string }{
		"unknown field":     {good + "lsten: 1\n", "", "lsten"},
		"route to nowhere":  {strings.Replace(good, "upstream: orders", "upstream: order", 1), "", "routes[0].upstream"},
		"two of one id":     {strings.Replace(good, "redis:", "  - {id: create-order, path: /other, upstream: orders}\nredis:", 1), "", "create-order"},
		"shares do not add": {good, "revision: 1\nregions: {eu: 70%, us: 20%}\n", "rules.yaml:2"},
		"negative":          {good, "revision: 1\nrules:\n  - {tenant: a, route: b, capacity: -1, refill_per_second: 1}\n", "rules.yaml:3"},
		"not our region":    {good, "revision: 1\nregions: {us: 100%}\n", `"eu"`},
		"no rules":          {strings.Replace(good, "RULES", "none.yaml", 1), "", "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := filepath.Join(dir, "rules.yaml")
			if err := os.WriteFile(rules, []byte(c.rules), 0o600); err != nil {
				t.Fatal(err)
			}
			o := app.Options{Config: []byte(strings.Replace(c.config, "RULES", rules, 1))}
			_, checked := app.Check(t.Context(), o)
			if checked == nil || !strings.Contains(checked.Error(), c.want) {
				t.Fatalf("check: %v, want it to name %s", checked, c.want)
			}
			if started := app.Run(t.Context(), o); started == nil || started.Error() != checked.Error() {
				t.Errorf("start: %v\ncheck: %v", started, checked)
			}
		})
	}
}
