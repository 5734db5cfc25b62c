package redisstore

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// TestWindowCreditWaits: of a window algorithm, share that moves leaves the giver at once and reaches the receiver one whole
// window later, so that no window anywhere admits more than the limit.
func TestWindowCreditWaits(t *testing.T) {
	for _, algorithm := range []limit.Algorithm{limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter} {
		t.Run(algorithm.String(), func(t *testing.T) {
			ctx := context.Background()
			eu, us := newSite(t, "eu", []string{"us"}), newSite(t, "us", []string{"eu"})
			rule := &limit.Rule{Capacity: 100, Algorithm: algorithm, WindowSeconds: 60, PeriodSeconds: 1}
			limits := map[*site]bucket.Limit{
				eu: {Key: key, Rule: rule, Revision: limit.Revision{Epoch: 1, Number: 1}, Base: 700_000, Floor: 35_000},
				us: {Key: key, Rule: rule, Revision: limit.Revision{Epoch: 1, Number: 1}, Base: 300_000, Floor: 15_000},
			}
			now := int64(1_760_256_000_000_000)
			at := func(elapsed time.Duration) {
				for _, s := range []*site{eu, us} {
					if err := s.client.Set(ctx, "test:now", now+elapsed.Microseconds(), 0).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
			admits := func(s *site) (n int) {
				l := limits[s]
				for l.Cost = 1; ; n++ {
					d, err := s.takes.Take(ctx, []bucket.Limit{l})
					if err != nil {
						t.Fatal(err)
					}
					if d.Outcome != limit.Allowed {
						return n
					}
				}
			}
			do := func(s *site, step rights.Step) rights.Report {
				step.Key = key
				r := s.store.Do(ctx, []Task{{Step: step, Limit: limits[s]}})[0]
				if r.Err != nil || r.Report.Verdict != rights.Applied {
					t.Fatalf("%s: %v, %v", step.Op, r.Report.Verdict, r.Err)
				}
				return r.Report
			}
			for s, peer := range map[*site]string{eu: "us", us: "eu"} {
				if err := s.client.HSet(ctx, recordKey, "self", 1, "peer:"+peer, 1).Err(); err != nil {
					t.Fatal(err)
				}
			}
			at(0)
			if e, u := admits(eu), admits(us); e != 70 || u != 30 {
				t.Fatalf("before the move %d and %d are admitted", e, u)
			}
			at(10 * time.Second)
			gave := do(eu, rights.Step{Op: rights.OpGive, Peer: "us", Amount: 500_000})
			got := do(us, rights.Step{Op: rights.OpApply, Peer: "eu", Row: gave.Row("eu")})
			if gave.Share != 200_000 || gave.Pair.Out.Ride != 0 || got.Share != 300_000 || got.Waiting != 500_000 {
				t.Fatalf("eu is left with %d, us has %d in force and %d waiting", gave.Share, got.Share, got.Waiting)
			}
			if e, u := admits(eu), admits(us); e != 0 || u != 0 {
				t.Errorf("in the same window %d and %d more are admitted", e, u)
			}
			at(69 * time.Second) // the next fixed window, and nothing of the first counts in the sliding ones any more
			do(us, rights.Step{Op: rights.OpLook, Peer: "eu"})
			first := admits(us)
			at(70 * time.Second)
			if r := do(us, rights.Step{Op: rights.OpLook, Peer: "eu"}); r.Share != 800_000 || r.Waiting != 0 {
				t.Fatalf("after a window %d are in force and %d wait", r.Share, r.Waiting)
			}
			if total := first + admits(us) + admits(eu); first > 30 || total < 50 || total > 100 {
				t.Errorf("the window after admits %d, %d of them before the credit", total, first)
			}
		})
	}
}
