package redisstore

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// movedSets spreads the index of moved keys over a cluster.
const movedSets = 64

func movedSet(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return "rl:@moved:" + strconv.Itoa(int(h.Sum32()%movedSets))
}

// index writes the keys of tasks into their sets, and waits, before any of them may move. Keys that this store has written
// before are left out.
func (s *Store) index(ctx context.Context, tasks []Task) error {
	var fresh []limit.Key
	s.mu.Lock()
	for i := range tasks {
		if _, ok := s.indexed[tasks[i].Step.Key]; !ok && tasks[i].Step.Op != rights.OpLook {
			fresh = append(fresh, tasks[i].Step.Key)
		}
	}
	s.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	if _, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, k := range fresh {
			name := k.Redis()
			pipe.SAdd(ctx, movedSet(name), name)
		}
		return nil
	}); err != nil {
		s.unreached(ctx, err)
		return fmt.Errorf("index %d keys that are to move: %w", len(fresh), err)
	}
	s.mu.Lock()
	for _, k := range fresh {
		s.indexed[k] = struct{}{}
	}
	s.mu.Unlock()
	return nil
}

// Forget empties what the store remembers of the index, for a Redis that has lost its data.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.indexed)
}

// Moved calls visit with batches of the keys that have, or may have, moved. A key may come more than once.
func (s *Store) Moved(ctx context.Context, visit func([]limit.Key) error) error {
	for i := range movedSets {
		for cursor := uint64(0); ; {
			names, next, err := s.client.SScan(ctx, "rl:@moved:"+strconv.Itoa(i), cursor, "", 500).Result()
			if err != nil {
				s.unreached(ctx, err)
				return fmt.Errorf("read the index of moved keys: %w", err)
			}
			keys := make([]limit.Key, 0, len(names))
			for _, n := range names {
				if k, err := limit.ParseRedis(n); err == nil {
					keys = append(keys, k)
				}
			}
			if len(keys) > 0 {
				if err := visit(keys); err != nil {
					return err
				}
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return nil
}
