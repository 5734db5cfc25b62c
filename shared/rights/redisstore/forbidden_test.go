package redisstore

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/testenv"
)

// TestUserWithoutScriptCommands: rights move by EVAL where SCRIPT is forbidden, also after the cache was emptied. (request-path 62)
func TestUserWithoutScriptCommands(t *testing.T) {
	server := testenv.StartRedis(t)
	ctx := context.Background()
	if err := server.Client().Do(ctx, "ACL", "SETUSER", "limiter", "on", ">pw", "~rl:*", "+@all", "-script", "-@dangerous", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	client, err := redisconn.New(redisconn.Options{Addrs: []string{server.Addr}, Username: "limiter", Password: "pw", OpTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	s := New(Options{Client: client, Peers: []string{"us"}})
	rule := limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	give := []Task{{
		Step:  rights.Step{Op: rights.OpGive, Key: key, Peer: "us", Amount: 1000},
		Limit: bucket.Limit{Key: key, Rule: &rule, Base: 700_000},
	}}
	if _, err := s.BeginRegion(ctx, 100, "run"); err != nil {
		t.Fatal(err)
	}
	for n := limit.Share(1); n <= 2; n++ {
		if r, err := s.ActivateRegion(ctx, 100, map[string]int64{"us": 7}); err != nil || r.Phase != rights.Active {
			t.Fatalf("region %+v, %v", r, err)
		}
		r := s.Do(ctx, give)[0]
		if r.Err != nil || r.Report.Amount != 1000 || r.Report.Share != 700_000-1000*n {
			t.Fatalf("gift %d: %+v, %v", n, r.Report, r.Err)
		}
		if err := server.Client().ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
