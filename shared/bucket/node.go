package bucket

import (
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
)

// homes remembers which node of a cluster holds each slot, as it was found when a call was last sent there: asking for it
// never waits, however unwell the cluster is.
type homes [clusterSlots]atomic.Pointer[string]

func (h *homes) note(slot int, node string) {
	if known := h[slot].Load(); known == nil || *known != node {
		h[slot].Store(&node)
	}
}

// Node is the address of the cluster node that holds key's bucket, as far as is known; empty without a cluster, so that
// what goes wrong with one node can be told from the others.
func (s *Redis) Node(key limit.Key) string {
	if _, ok := s.opts.Client.(*redis.ClusterClient); !ok {
		return ""
	}
	if node := s.lanes.homes[keySlot(key.Redis())].Load(); node != nil {
		return *node
	}
	return ""
}
