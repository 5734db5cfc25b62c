package life

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
)

// roomEvery is after how many looks the memory is measured.
const roomEvery = 5

// room is what a Redis, or all masters of a cluster together, have of memory, and what happens when it is used up.
type room struct {
	// used and most in bytes; most 0 is no bound.
	used, most int64
	// evicted keys since the servers started; evicting tells that the policy of one of them allows it.
	evicted  int64
	evicting bool
}

func (w *Watcher) observeRoom() error {
	m := w.opts.Meter
	evicted, err1 := m.Int64ObservableCounter("partidor.redis.evicted", metric.WithUnit("{key}"),
		metric.WithDescription("Keys that the regional Redis has evicted since it started: each may have been a bucket in use."))
	evicting, err2 := m.Int64ObservableGauge("partidor.redis.evicting", metric.WithUnit("{server}"),
		metric.WithDescription("1 where the regional Redis's maxmemory-policy is not noeviction: buckets, and rights with them, may vanish."))
	used, err3 := m.Int64ObservableGauge("partidor.redis.memory.used", metric.WithUnit("By"),
		metric.WithDescription("Memory that the regional Redis uses."))
	most, err4 := m.Int64ObservableGauge("partidor.redis.memory.limit", metric.WithUnit("By"),
		metric.WithDescription("Memory that the regional Redis may use; 0 where it has no bound."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := w.room.Load()
		if r == nil {
			return nil // not looked yet, or not allowed to
		}
		allowed := int64(0)
		if r.evicting {
			allowed = 1
		}
		o.ObserveInt64(evicted, r.evicted)
		o.ObserveInt64(evicting, allowed)
		o.ObserveInt64(used, r.used)
		o.ObserveInt64(most, r.most)
		return nil
	}, evicted, evicting, used, most)
	return err
}

// measure asks the server, or every master of a cluster. What cannot be asked leaves what was last known.
func (w *Watcher) measure(ctx context.Context, client redis.UniversalClient) {
	var mu sync.Mutex
	var all room
	add := func(ctx context.Context, c commander) error {
		one, err := roomOf(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		all.used, all.most, all.evicted, all.evicting = all.used+one.used, all.most+one.most, all.evicted+one.evicted, all.evicting || one.evicting
		return err
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return add(ctx, node) })
	} else {
		err = add(ctx, client)
	}
	if err == nil {
		w.room.Store(&all)
	}
}

// roomOf reads two sections of INFO, one by one: not every server answers several at once.
func roomOf(ctx context.Context, c commander) (r room, err error) {
	memory, err := c.Info(ctx, "memory").Result()
	if err != nil {
		return r, err
	}
	stats, err := c.Info(ctx, "stats").Result()
	if err != nil {
		return r, err
	}
	number := func(info, name string) int64 {
		n, _ := strconv.ParseInt(field(info, name), 10, 64) // a server that does not say has none
		return n
	}
	policy := field(memory, "maxmemory_policy")
	return room{
		used: number(memory, "used_memory"), most: number(memory, "maxmemory"),
		evicted: number(stats, "evicted_keys"), evicting: policy != "" && policy != "noeviction",
	}, nil
}
