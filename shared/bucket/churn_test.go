package bucket

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// Decisions reuse the connections of their own store's pool: as many as before after thousands more, no more than the pool has, and
// none of another store's, though both speak to one server. (request-path F68)
func TestConnectionsAreReused(t *testing.T) {
	server := testenv.StartRedis(t)
	ctx := context.Background()
	admin := server.Client()
	first, second := connect(t, server.Addr), connect(t, server.Addr)
	s := NewRedis(Options{Client: first, CallTimeout: 20 * time.Second})
	defer s.Close()
	decide := func() {
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				for n := range 60 {
					l := one(&limit.DefaultRule, 1)
					l[0].Key.Tenant = fmt.Sprint("t", i, n)
					if _, err := s.Take(ctx, l); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	received := func() int {
		stats, err := admin.InfoMap(ctx, "stats").Result()
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(stats["Stats"]["total_connections_received"])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	decide()
	received() // by a connection of its own, which is kept too
	before, open := received(), first.PoolStats().TotalConns
	decide()
	// The second round may find more workers busy at once than the first did, but never opens what it does not keep.
	grown := int(first.PoolStats().TotalConns) - int(open)
	if opened := received() - before; opened > grown || first.PoolStats().TotalConns > 16 {
		t.Errorf("%d connections opened for 1920 decisions, of which %d are kept; %d in all", opened, grown, first.PoolStats().TotalConns)
	}
	if other := second.PoolStats(); other.TotalConns != 0 || other.Hits+other.Misses != 0 {
		t.Errorf("the other store's pool was used: %+v", other)
	}
}
