package app_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/testenv"
)

// record keeps what is logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) has(text string) bool { return r.count(text) > 0 }

func (r *record) count(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), text)
}

// A Redis that evicts is told of at the start (request-path 74); the gateway serves all the same.
func TestEvictionPolicyIsWarnedOf(t *testing.T) {
	s := newSet(t)
	redis := testenv.StartRedis(t, testenv.RedisConfig("maxmemory", "64mb"), testenv.RedisConfig("maxmemory-policy", "allkeys-lru"))
	var log record
	tel := telemetry.Discard()
	tel.Logger = slog.New(slog.NewTextHandler(&log, nil))
	config := strings.Replace(s.config, s.redis.Addr, redis.Addr, 1) + "\nregion: eu\n"
	if _, err := startOptions(t, app.Options{Config: []byte(config), Telemetry: tel}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the policy is warned of", func() bool { return log.has("allkeys-lru") })
}
