package bucket

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// A never-moved bucket, all in, takes at most 240 bytes of the server's memory. (DESIGN §9)
func TestMemoryPerBucket(t *testing.T) {
	server, s := startStore(t)
	ctx, c := context.Background(), server.Client()
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	used := func() int {
		info, err := c.InfoMap(ctx, "memory").Result()
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(info["Memory"]["used_memory"])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	mustTake(t, s, one(rule, 1))
	before := used()
	const keys = 50_000
	var wg sync.WaitGroup
	for worker := range 32 {
		wg.Go(func() {
			for i := worker; i < keys; i += 32 {
				l := one(&limit.Rule{Capacity: 1000, Refill: 7, PeriodSeconds: 60}, 1)
				l[0].Key = limit.Key{Tenant: fmt.Sprintf("shop-%05d", i), Route: "create-order"}
				l[0].Base, l[0].Revision = 333_333, limit.Revision{Epoch: 1, Number: 12_345}
				for range 2 {
					if _, err := s.Take(ctx, l); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	each := float64(used()-before) / keys
	t.Logf("%.0f bytes per bucket", each)
	if each > 240 {
		t.Errorf("%.0f bytes per bucket, want at most 240", each)
	}
}
