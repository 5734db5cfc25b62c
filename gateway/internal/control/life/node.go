package life

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket"
)

// In a cluster the record of a master lies in the first of its slots. It goes with that slot: to the replica that is promoted,
// which then finds the record of another run and knows that its data may be older. A slot that is moved to another master on
// purpose looks the same: that costs the buckets that are missing there a full start, once.

// lookAll looks at every master. One that is away is the breaker's to tell.
func (w *Watcher) lookAll(ctx context.Context, client redis.UniversalClient) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		_ = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			_ = w.look(ctx, c)
			return nil
		})
		return
	}
	_ = w.look(ctx, client)
}

// ownRecord names the record of the node behind c, empty if it is no master with slots.
func ownRecord(ctx context.Context, c commander) (string, error) {
	nodes, err := c.ClusterNodes(ctx).Result()
	if err != nil {
		return "", fmt.Errorf("ask redis for its slots: %w", err)
	}
	slot, ok := firstSlot(nodes)
	if !ok {
		return "", nil
	}
	return recordKey + ":{" + tagOf(slot) + "}", nil
}

// firstSlot finds the lowest slot of the node that speaks, in its reply to CLUSTER NODES.
func firstSlot(nodes string) (slot int, ok bool) {
	const flags, slots = 2, 8
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) <= slots || !strings.Contains(f[flags], "myself") || !strings.Contains(f[flags], "master") {
			continue
		}
		first, _, _ := strings.Cut(f[slots], "-")
		n, err := strconv.ParseUint(first, 10, 16)
		return int(n), err == nil && n < bucket.Slots
	}
	return 0, false
}

var tags sync.Map // of slot -> string

// tagOf is a hash tag that falls into slot: the smallest number, base 36, that does.
func tagOf(slot int) string {
	if t, ok := tags.Load(slot); ok {
		return t.(string)
	}
	for n := uint64(0); ; n++ {
		if t := strconv.FormatUint(n, 36); bucket.Slot(t) == slot {
			tags.Store(slot, t)
			return t
		}
	}
}
