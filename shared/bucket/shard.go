package bucket

import (
	"context"
	"math/rand/v2"

	"partidor.dev/partidor/shared/limit"
)

// appendName appends the bucket's key in Redis.
func (l *Limit) appendName(dst []byte) []byte {
	if l.shards > 1 {
		return append(dst, l.Key.RedisShard(l.shard)...)
	}
	return l.Key.AppendRedis(dst)
}

// takeSharded asks one shard at random, and one other before refusing. A shard holds 1/n of the slice. Rules with shards are
// not for calls with several limits, which need one slot: such a call uses one bucket, whatever the rule says.
//
// A cost above what a shard can hold is too large: neither time nor another region could bring it, since shards lend and borrow
// nothing. The levels in the answer are the shard's times n, which is what the others hold if requests fall evenly.
func (s *Redis) takeSharded(ctx context.Context, l Limit) (limit.Decision, error) {
	n := l.Rule.Shards
	first := rand.IntN(n)
	limits := [1]Limit{l}
	limits[0].shards, limits[0].shard = n, first
	d, err := s.ask(ctx, limits[:])
	if err == nil && d.Outcome == limit.Refused && float64(l.Cost)*float64(n)*float64(limit.Whole) > float64(d.Rule.Capacity)*float64(d.Share) {
		d.Outcome, d.RetryAfter = limit.TooLarge, 0
	} else if err == nil && d.Outcome == limit.Refused {
		limits[0].shard, limits[0].Owed = (first+1+rand.IntN(n-1))%n, 0
		var other limit.Decision
		if other, err = s.ask(ctx, limits[:]); other.Outcome == limit.Refused && other.RetryAfter > d.RetryAfter {
			other.RetryAfter = d.RetryAfter
		}
		d = other
	}
	d.Remaining *= int64(n)
	d.Tokens *= float64(n)
	return d, err
}
