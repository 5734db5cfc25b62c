package redisstore

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/testenv"
)

// TestRecordsOfACluster: a life of a region is written beside every slot, since a script sees one slot only. A slot that has lost
// its record makes the region's record that of no life; a peer that has begun anew keeps the region from becoming active.
func TestRecordsOfACluster(t *testing.T) {
	cluster := testenv.StartRedisCluster(t)
	client, err := redisconn.New(redisconn.Options{Addrs: cluster.Addrs(), Cluster: true, OpTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s, ctx := New(Options{Client: client}), context.Background()
	want := func(what string, self int64, phase rights.Phase, r Record, err error) {
		t.Helper()
		if err != nil || r.Self != self || r.Phase != phase {
			t.Fatalf("%s: %+v, %v; want life %d, %v", what, r, err, self, phase)
		}
	}
	r, err := s.Record(ctx)
	want("before its first life", 0, rights.Active, r, err)
	began := time.Now()
	r, err = s.BeginRegion(ctx, 100, "run")
	want("begun", 100, rights.Relearning, r, err)
	r, err = s.ActivateRegion(ctx, 100, map[string]int64{"eu": 7, "us": 9})
	want("active", 100, rights.Active, r, err)
	t.Logf("%d records written twice in %v, %d kB on one master", bucket.Slots, time.Since(began).Round(time.Millisecond),
		usedMemory(t, cluster.Masters[0])/1024)
	if r, err := s.VoidPeer(ctx, "eu", 0); err != nil || r.Peer != 7 {
		t.Errorf("eu is known as %d, %v", r.Peer, err)
	}
	if _, err := s.VoidPeer(ctx, "eu", 8); err != nil {
		t.Fatal(err)
	}
	r, err = s.BeginRegion(ctx, 102, "run")
	want("begun again", 102, rights.Relearning, r, err)
	r, err = s.ActivateRegion(ctx, 102, map[string]int64{"eu": 7, "us": 9})
	want("by an answer of a former life", 102, rights.Relearning, r, err)
	r, err = s.ActivateRegion(ctx, 102, map[string]int64{"eu": 8, "us": 9})
	want("active again", 102, rights.Active, r, err)
	if err := cluster.Masters[1].Client().FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	r, err = s.Record(ctx)
	want("after the loss of a master's data", 0, rights.Active, r, err)
}

func usedMemory(t *testing.T, r *testenv.Redis) int64 {
	t.Helper()
	n, err := r.Client().InfoMap(context.Background(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for _, c := range n["Memory"]["used_memory"] {
		bytes = 10*bytes + int64(c-'0')
	}
	return bytes
}
