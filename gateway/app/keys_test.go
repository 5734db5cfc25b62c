package app_test

import (
	"net/http"
	"testing"
	"time"
)

// While keys are rotated two of them are live, for one tenant with one bucket. A key that is switched off, deleted or over is
// refused; those beside it stay. Asked of a real database, from which the gateway hears of changes by itself.
func TestKeysAreRotated(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 1_000_000, 1, 3600)
	g := start(t, s.config)
	status := func(key string, want int) func() bool {
		return func() bool { return g.post(key).StatusCode == want }
	}
	within := func(what string, ok func() bool) {
		t.Helper()
		began := time.Now()
		eventually(t, 30*time.Second, what, ok)
		t.Logf("%s after %s", what, time.Since(began))
	}
	issue := func(key, ends string) {
		t.Helper()
		s.exec(t, `INSERT INTO api_key (hash, tenant_id, expires_at) VALUES (sha256($1::bytea), 'shop-a', now() + $2::interval)`, []byte(key), ends)
	}
	if g.post("new").StatusCode != http.StatusUnauthorized {
		t.Fatal("a key is known before it is issued")
	}
	issue("new", "1 hour")
	within("the new key is live", status("new", http.StatusOK))
	before, after := g.post("shop-a"), g.post("new")
	if before.StatusCode != http.StatusOK || after.StatusCode != http.StatusOK ||
		len(before.Header.Get("X-RateLimit-Remaining")) == 0 || before.Header.Get("X-RateLimit-Remaining") <= after.Header.Get("X-RateLimit-Remaining") {
		t.Errorf("two live keys: %d with %s left, then %d with %s left", before.StatusCode, before.Header.Get("X-RateLimit-Remaining"),
			after.StatusCode, after.Header.Get("X-RateLimit-Remaining"))
	}
	s.exec(t, `UPDATE api_key SET enabled = false WHERE hash = sha256('shop-a'::bytea)`)
	within("the old key is revoked", status("shop-a", http.StatusUnauthorized))
	if got := g.post("new").StatusCode; got != http.StatusOK {
		t.Errorf("the new key, after the old one was revoked: %d", got)
	}
	issue("third", "1 hour")
	within("a third key is live", status("third", http.StatusOK))
	s.exec(t, `DELETE FROM api_key WHERE hash = sha256('third'::bytea)`)
	within("a deleted key is refused", status("third", http.StatusUnauthorized))
	s.exec(t, `UPDATE api_key SET expires_at = now() + interval '1 second' WHERE hash = sha256('new'::bytea)`)
	within("a key whose time is over is refused", status("new", http.StatusUnauthorized))
}
