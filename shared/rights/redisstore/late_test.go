package redisstore

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// A window's key may make its first move while a part of its base share is late, for the base split was changed a moment ago: that
// part waits for a whole window, as if it had been given.
func TestFirstMoveWithALateBaseShare(t *testing.T) {
	ctx := context.Background()
	us := newSite(t, "us", []string{"eu"})
	now := int64(1_760_256_000_000_000)
	at := func(elapsed time.Duration) {
		t.Helper()
		if err := us.client.Set(ctx, "test:now", now+elapsed.Microseconds(), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := us.client.HSet(ctx, recordKey, "self", 1, "peer:eu", 1).Err(); err != nil {
		t.Fatal(err)
	}
	for algorithm := limit.TokenBucket; algorithm <= limit.SlidingWindowCounter; algorithm++ {
		key := limit.Key{Tenant: "shop-a", Route: algorithm.String()}
		rule := &limit.Rule{Capacity: 100, Refill: 100, PeriodSeconds: 60, Algorithm: algorithm}
		if algorithm != limit.TokenBucket {
			rule.Refill, rule.WindowSeconds = 0, 60
		}
		l := bucket.Limit{Key: key, Rule: rule, Revision: limit.Revision{Epoch: 1, Number: 2}, Base: 700_000, Late: 400_000, Floor: 15_000}
		step := rights.Step{Key: key, Op: rights.OpGive, Peer: "eu", Amount: 100_000}
		at(0)
		r := us.store.Do(ctx, []Task{{Step: step, Limit: l}})[0]
		if r.Err != nil || r.Report.Verdict != rights.Applied {
			t.Fatalf("%v: %v, %v", algorithm, r.Report.Verdict, r.Err)
		}
		share, waiting := limit.Share(200_000), limit.Share(400_000)
		if algorithm == limit.TokenBucket {
			share, waiting = 600_000, 0 // its tokens are what counts: 30 of the 60 it could hold
		}
		if got := r.Report; got.Base != 700_000 || got.Share != share || got.Waiting != waiting || got.Tokens > 30 {
			t.Errorf("%v: base %d, share %d, waiting %d, level %v", algorithm, got.Base, got.Share, got.Waiting, got.Tokens)
		}
		at(time.Minute)
		l.Late = 0
		step.Op = rights.OpLook
		r = us.store.Do(ctx, []Task{{Step: step, Limit: l}})[0]
		if got := r.Report; r.Err != nil || got.Share != 600_000 || got.Waiting != 0 {
			t.Errorf("%v, a window later: share %d, waiting %d, %v", algorithm, got.Share, got.Waiting, r.Err)
		}
	}
}
