package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/control/rules/ledgertest"
	"partidor.dev/partidor/shared/testenv"
)

// Rules come from a ledger, then from a file whose revision is lower than the ledger's, then from another ledger with lower ones
// still, then from the first again. Each takes effect with the first gateway that uses it, also for gateways that do not
// use it yet; no bucket is refilled by that.
func TestAnotherSourceOfRulesTakesEffectAtOnce(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	for capacity := range 5 { // revisions
		s.rule(t, "shop-a", 100+capacity, 1, 86_400)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "revision: 1\ntenants: [{id: shop-a}]\napi_keys: [{tenant: shop-a, key: shop-a}]\n" +
		"rules: [{tenant: shop-a, route: create-order, capacity: 50, refill_per_second: 1, refill_period_seconds: 86400}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile := strings.Replace(s.config, fmt.Sprintf("postgres: {url: %q}", s.postgres.URL), fmt.Sprintf("rules: {file: %q}", file), 1)
	young := *s
	young.postgres = testenv.StartPostgres(t)
	young.ledger = young.postgres.Conn(t)
	ledgertest.Migrate(t, young.ledger)
	young.shop(t, "shop-a")
	young.rule(t, "shop-a", 40, 1, 86_400)
	young.config = strings.Replace(s.config, s.postgres.URL, young.postgres.URL, 1)

	want := func(what string, r *http.Response, limit, left string) {
		t.Helper()
		if l, n := r.Header.Get("X-RateLimit-Limit"), r.Header.Get("X-RateLimit-Remaining"); l != limit || n != left {
			t.Errorf("%s: limit %s, %s left, want %s and %s", what, l, n, limit, left)
		}
	}
	old := start(t, s.config)
	want("ledger", old.post("shop-a"), "104", "103")
	second := start(t, fromFile)
	want("file", second.post("shop-a"), "50", "49")
	want("the gateway that still has the ledger's", old.post("shop-a"), "50", "48")
	third := start(t, young.config)
	want("another ledger", third.post("shop-a"), "40", "39")
	want("the gateway with the file", second.post("shop-a"), "40", "38")
	// A change in the source that is in force, and one in a source that is not.
	young.rule(t, "shop-a", 30, 1, 86_400)
	s.rule(t, "shop-a", 100, 100, 1)
	eventually(t, 10*time.Second, "the change is in force", func() bool { return third.post("shop-a").Header.Get("X-RateLimit-Limit") == "30" })
	if r := old.post("shop-a"); r.Header.Get("X-RateLimit-Limit") != "30" {
		t.Errorf("the first ledger's own gateway: limit %s, want 30", r.Header.Get("X-RateLimit-Limit"))
	}
	again := start(t, s.config)
	if r := again.post("shop-a"); r.Header.Get("X-RateLimit-Limit") != "100" {
		t.Errorf("back to the first ledger: limit %s", r.Header.Get("X-RateLimit-Limit"))
	}
}
