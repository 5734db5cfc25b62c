package exchange

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/wire"
)

// TestCluster: us's Redis is a cluster. Its first life, advice, asks and loans work as on one server; the loss of one master's data
// and its replacement by its replica, whether it holds the key or not, begin a new life of the region, in which the share comes back
// and the bucket starts empty.
func TestCluster(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	cluster := testenv.StartRedisCluster(t)
	us.connect(t, redisconn.Options{Addrs: cluster.Addrs(), Cluster: true, OpTimeout: 20 * time.Second})
	link(t, eu, us, 0.05, 0.1, 20*time.Millisecond)
	counts := &counter{}
	heat := NewHeat(counts, 1000)
	began := time.Now()
	eu.start(t, "eu-1", nil)
	us.start(t, "us-1", func(o *Options) { o.Heat = heat })
	eu.alive(t)
	us.alive(t)
	t.Logf("first life on a cluster: %v", time.Since(began).Round(time.Millisecond))

	began = time.Now()
	admitted := 0
	flood := func() {
		for range 5 {
			d := us.decide(t, key, 1)
			allowed := d.Outcome == limit.Allowed
			counts.count(allowed)
			heat.Note(&d)
			if allowed {
				admitted++
			}
		}
	}
	await(t, "eu has lent us tokens", func() bool {
		flood()
		u := us.state(t, key)
		return u.Moved && u.Pair("eu").In.Loan > 0
	})
	cycle := int64(0)
	await(t, "share at 20/80", func() bool {
		flood()
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", eu.share(t), 200_000)})
		return eu.share(t) == 200_000 && us.share(t) == 800_000
	})
	if world := 200 + 100*time.Since(began).Seconds(); float64(admitted) > world+1 {
		t.Errorf("us admitted %d, the world's limit gives %.0f", admitted, world)
	}
	await(t, "the rules know that the key has moved", func() bool { return us.rules.Load().Lookup(key.Tenant, key.Route).Moved })

	holder := bucket.Slot(key.Redis()) * len(cluster.Masters) / bucket.Slots
	for _, fault := range []struct {
		name string
		node int
		do   func(node int)
	}{
		{"the key's master loses its data", holder, func(n int) { cluster.Masters[n].Client().FlushAll(context.Background()) }},
		{"another master loses its data", (holder + 1) % 3, func(n int) { cluster.Masters[n].Client().FlushAll(context.Background()) }},
		{"the key's master is replaced by its replica", holder, func(n int) { cluster.Masters[n].Kill() }},
	} {
		before := us.state(t, key)
		began := time.Now()
		fault.do(fault.node)
		elapsed := int64(100)
		await(t, fault.name+": us has its share again", func() bool {
			elapsed++
			offered(t, elapsed, us)
			states, errs := us.store.Read(context.Background(), []limit.Key{key})
			return errs[0] == nil && states[0].Moved && states[0].Incarnation > before.Incarnation && states[0].Phase == rights.Active
		})
		t.Logf("%s: back after %v", fault.name, time.Since(began).Round(time.Millisecond))
		await(t, fault.name+": all shares are accounted for", func() bool {
			e, u := eu.state(t, key), us.state(t, key)
			return e.Share+u.Share == limit.Whole && !e.Pair("us").Pending() && !u.Pair("eu").Pending()
		})
	}
}
