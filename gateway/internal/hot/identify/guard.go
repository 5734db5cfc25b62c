package identify

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// Guard counts requests per client network and fixed window, before anybody is authenticated. Its memory is fixed: a
// table of sets of counters, in which a newcomer replaces the counter that has counted least in its set. An attacker
// that spreads over very many networks can therefore push out small counts, never large ones.
type Guard struct {
	requests uint32
	window   time.Duration
	start    time.Time
	seed     maphash.Seed
	shards   [guardShards]guardShard
}

const (
	guardShards = 64
	guardSets   = 128
	guardWays   = 8 // 65,536 counters in all, 1.5 MB.
)

type guardShard struct {
	mu   sync.Mutex
	sets [guardSets][guardWays]guardCount
}

type guardCount struct {
	client uint64 // Hash of the network.
	window uint32
	count  uint32
}

// NewGuard builds the guard of a valid configuration; nil where it is off. start is the beginning of its first window.
func NewGuard(c config.Guard, start time.Time) *Guard {
	if c.Requests <= 0 {
		return nil
	}
	return &Guard{requests: uint32(c.Requests), window: c.Window, start: start, seed: maphash.MakeSeed()}
}

// Count takes one request of client into account, unless it is over the limit already. ok tells whether it was within
// the limit; else wait is the time until the window ends.
func (g *Guard) Count(client netip.Prefix, now time.Time) (wait time.Duration, ok bool) {
	return g.look(client, now, 1)
}

// Check tells what Count would, without counting.
func (g *Guard) Check(client netip.Prefix, now time.Time) (wait time.Duration, ok bool) {
	return g.look(client, now, 0)
}

func (g *Guard) look(client netip.Prefix, now time.Time, n uint32) (time.Duration, bool) {
	age := max(0, now.Sub(g.start))
	window := uint32(age / g.window)
	h := maphash.Comparable(g.seed, client)
	shard := &g.shards[h%guardShards]
	set := &shard.sets[h/guardShards%guardSets]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	victim := &set[0]
	for i := range set {
		c := &set[i]
		if c.client == h && c.window == window {
			if c.count >= g.requests {
				return g.window - age%g.window, false
			}
			c.count += n
			return 0, true
		}
		if victim.window == window && (c.window != window || c.count < victim.count) {
			victim = c
		}
	}
	if n > 0 {
		*victim = guardCount{client: h, window: window, count: n}
	}
	return 0, true
}
