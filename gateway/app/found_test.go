package app_test

import (
	"net/http"
	"testing"
)

// Somebody writes nonsense into a bucket: it is made anew, counted and logged, and requests go on (request-path 70,
// limits 70).
func TestDamagedBucketIsCounted(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 5, 1, 3600)
	g := start(t, s.config)
	g.post("shop-a")
	const bucket = "rl:{shop-a}:create-order"
	client := s.redis.Client()
	if err := client.HSet(t.Context(), bucket, "tokens", "many").Err(); err != nil {
		t.Fatal(err)
	}
	if r := g.post("shop-a"); r.StatusCode != http.StatusOK {
		t.Errorf("status %d after the tokens were overwritten, want 200", r.StatusCode)
	}
	if err := client.Set(t.Context(), bucket, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if r := g.post("shop-a"); r.StatusCode != http.StatusOK || r.Header.Get("X-RateLimit-Remaining") != "4" {
		t.Errorf("status %d, %s left after the key was overwritten, want 200 and a bucket made anew", r.StatusCode, r.Header.Get("X-RateLimit-Remaining"))
	}
	if n := g.metric("partidor_bucket_findings_total", `partidor_kind="broken"`); n != 2 {
		t.Errorf("%v damaged buckets counted, want 2", n)
	}
}
