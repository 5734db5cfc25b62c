package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Busy is one key's rates, in tokens per second, over the time it was watched.
type Busy struct {
	Tenant   string      `json:"tenant"`
	Route    string      `json:"route"`
	Admitted float64     `json:"admitted_per_second"`
	Refused  float64     `json:"refused_per_second"`
	Share    limit.Share `json:"share,omitempty"`
}

// Top watches the table for a while and gives the n keys that were asked for most, the most refused first.
func (t *Table) Top(ctx context.Context, n int, watch time.Duration) ([]Busy, error) {
	type totals struct{ admitted, refused uint64 }
	before := make(map[limit.Key]totals, t.Keys())
	t.each(func(key limit.Key, c *counter) {
		before[key] = totals{c.admitted.Load(), c.refused.Load()}
	})
	began := time.Now()
	timer := time.NewTimer(watch)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	seconds := time.Since(began).Seconds()
	var busy []Busy
	t.each(func(key limit.Key, c *counter) {
		was := before[key]
		b := Busy{
			Tenant: key.Tenant, Route: key.Route, Share: limit.Share(c.share.Load()),
			Admitted: float64(c.admitted.Load()-was.admitted) / seconds, Refused: float64(c.refused.Load()-was.refused) / seconds,
		}
		if b.Admitted+b.Refused > 0 {
			busy = append(busy, b)
		}
	})
	slices.SortFunc(busy, func(a, b Busy) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Admitted, a.Admitted), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Route, b.Route))
	})
	return busy[:min(n, len(busy))], nil
}

// each calls f for every key, shard by shard.
func (t *Table) each(f func(limit.Key, *counter)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		for key, c := range s.counters {
			f(key, c)
		}
		s.mu.RUnlock()
	}
}
