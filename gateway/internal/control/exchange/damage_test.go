package exchange

import (
	"context"
	"fmt"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// damages are the ways in which a moved key, or all of a Redis, can be lost or spoilt while the server goes on.
var damages = map[string]func(ctx context.Context, s *site) error{
	"deleted":  func(ctx context.Context, s *site) error { return s.client.Del(ctx, key.Redis()).Err() },
	"unlinked": func(ctx context.Context, s *site) error { return s.client.Unlink(ctx, key.Redis()).Err() },
	"expired": func(ctx context.Context, s *site) error {
		return s.client.PExpire(ctx, key.Redis(), time.Millisecond).Err()
	},
	"renamed":  func(ctx context.Context, s *site) error { return s.client.Rename(ctx, key.Redis(), "elsewhere").Err() },
	"evicted":  evict,
	"a string": func(ctx context.Context, s *site) error { return s.client.Set(ctx, key.Redis(), "x", 0).Err() },
	"a list": func(ctx context.Context, s *site) error {
		s.client.Del(ctx, key.Redis())
		return s.client.RPush(ctx, key.Redis(), "x").Err()
	},
	"share deleted":         func(ctx context.Context, s *site) error { return s.client.HDel(ctx, key.Redis(), "share").Err() },
	"share no number":       spoil("share", "x"),
	"share infinite":        spoil("share", "inf"),
	"share above the whole": spoil("share", "1000001"),
	"held negative":         spoil("held", "-1"),
	"floor no number":       spoil("floor", "low"),
	"base no number":        spoil("base", "x"),
	"incarnation no number": spoil("incarnation", "x"),
	"a phase that is none":  spoil("phase", "asleep"),
	"counters no numbers":   spoil("in:eu", "a b c d"),
	"counters cut short":    spoil("in:eu", "600000"),
	"counters deleted": func(ctx context.Context, s *site) error {
		return s.client.HDel(ctx, key.Redis(), "in:eu", "out:eu", "ack:eu").Err()
	},
	"one counter deleted":         func(ctx context.Context, s *site) error { return s.client.HDel(ctx, key.Redis(), "in:eu").Err() },
	"peer no numbers":             spoil("peer:eu", "x 1 1 0"),
	"all data":                    func(ctx context.Context, s *site) error { return s.client.FlushAll(ctx).Err() },
	"the database":                func(ctx context.Context, s *site) error { return s.client.FlushDB(ctx).Err() },
	"the region's record":         func(ctx context.Context, s *site) error { return s.client.Del(ctx, "rl:@region").Err() },
	"the record a string":         func(ctx context.Context, s *site) error { return s.client.Set(ctx, "rl:@region", "x", 0).Err() },
	"the record's number":         func(ctx context.Context, s *site) error { return s.client.HSet(ctx, "rl:@region", "self", "x").Err() },
	"the key and the index of it": func(ctx context.Context, s *site) error { return s.client.Del(ctx, key.Redis(), movedSetOf(key)).Err() },
}

func spoil(field, value string) func(context.Context, *site) error {
	return func(ctx context.Context, s *site) error { return s.client.HSet(ctx, key.Redis(), field, value).Err() }
}

// movedSetOf finds the index set that holds the key.
func movedSetOf(key limit.Key) string { return "rl:@moved:" + fmt.Sprint(indexOf(key)) }

func indexOf(key limit.Key) uint32 {
	h := uint32(2166136261) // FNV-1a, as in redisstore
	for _, c := range []byte(key.Redis()) {
		h = (h ^ uint32(c)) * 16777619
	}
	return h % 64
}

// evict lets Redis run full until it has thrown the key away, and what else was not used of late.
func evict(ctx context.Context, s *site) error {
	for _, c := range [][2]string{{"maxmemory-policy", "allkeys-random"}, {"maxmemory", "1mb"}} {
		if err := s.client.ConfigSet(ctx, c[0], c[1]).Err(); err != nil {
			return err
		}
	}
	for i := 0; s.client.Exists(ctx, key.Redis()).Val() > 0; i++ {
		s.client.Set(ctx, fmt.Sprint("filler", i), "x", 0) // may be refused: there is no room
	}
	return s.client.ConfigSet(ctx, "maxmemory", "0").Err()
}

// TestDamage: whatever happens to the rights of a moved key in us's Redis, it is noticed, a new incarnation begins with an empty
// bucket, eu tells what it remembers, and us has its share again. Not a token more than the limit is admitted meanwhile.
func TestDamage(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eu, us := moved(t)
			await(t, "the rules know that the key has moved", func() bool {
				return us.rules.Load().Lookup(key.Tenant, key.Route).Moved
			})
			began := time.Now()
			for _, s := range []*site{eu, us} {
				for s.take(t, key, 1) { // until it is empty
				}
			}
			life := us.state(t, key).Incarnation
			if err := damage(context.Background(), us); err != nil {
				t.Fatal(err)
			}
			admitted, elapsed := 0, int64(0)
			await(t, "us has its share again", func() bool {
				elapsed++
				offered(t, elapsed, us)
				for _, s := range []*site{eu, us} {
					if s.take(t, key, 1) {
						admitted++
					}
				}
				states, errs := us.store.Read(context.Background(), []limit.Key{key})
				return errs[0] == nil && states[0].Share == 800_000 && states[0].Phase == rights.Active && states[0].Incarnation > life
			})
			for us.take(t, key, 1) {
				admitted++
			}
			if came := int(time.Since(began).Seconds()/100) + 1; admitted > came {
				t.Errorf("admitted %d from empty buckets, %d came in", admitted, came)
			}
			if e := eu.state(t, key); e.Share != 200_000 || e.Phase != rights.Active {
				t.Errorf("eu has %d, %v", e.Share, e.Phase)
			}
		})
	}
}
