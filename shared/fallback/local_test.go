package fallback

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func rule(capacity, refill int64) *limit.Rule {
	return &limit.Rule{Capacity: capacity, Refill: refill, PeriodSeconds: 1}
}

func one(tenant string, r *limit.Rule, cost int64) []bucket.Limit {
	return []bucket.Limit{{Key: limit.Key{Tenant: tenant, Route: "items"}, Rule: r, Base: limit.Whole, Floor: limit.Whole / 20, Cost: cost}}
}

// fleet is the instances of one region, cut off from their Redis, behind a round-robin balancer.
type fleet struct {
	now       time.Time
	instances []*Local
	next      int
}

func newFleet(n int) *fleet {
	f := &fleet{now: epoch}
	f.scale(n)
	return f
}

func (f *fleet) scale(n int) {
	for len(f.instances) < n {
		f.instances = append(f.instances, NewLocal(f.now, 100))
	}
	f.instances = f.instances[:n]
}

// load sends requests at a steady rate and counts the admitted ones per instance.
func (f *fleet) load(d time.Duration, perSecond int, limits []bucket.Limit) (admitted []int) {
	admitted = make([]int, len(f.instances))
	step := time.Second / time.Duration(perSecond)
	for end := f.now.Add(d); f.now.Before(end); f.now = f.now.Add(step) {
		i := f.next % len(f.instances)
		f.next++
		if f.instances[i].Take(f.now, limits, Terms{Instances: len(f.instances)}).Outcome == limit.Allowed {
			admitted[i]++
		}
	}
	return admitted
}

func sum(n []int) (s int) {
	for _, v := range n {
		s += v
	}
	return s
}

// Case request-path 40: a slice of 3/s, burst 6, over 5 gateways.
func TestSmallSlicesAreDividedWithoutLoss(t *testing.T) {
	f := newFleet(5)
	got := f.load(time.Minute, 10, one("t1", rule(6, 3), 1))
	if s := sum(got); s < 160 || s > 200 {
		t.Errorf("admitted %d in 60 s, want 180 ± 20", s)
	}
	for i, n := range got {
		if n == 0 {
			t.Errorf("gateway %d let nothing through", i)
		}
	}
}

// Case request-path 41: the number of gateways changes during the outage.
func TestPartsFollowTheNumberOfInstances(t *testing.T) {
	f, limits := newFleet(4), one("t1", rule(40, 20), 1)
	total := 0
	for _, n := range []int{4, 8, 2} {
		f.scale(n)
		total += sum(f.load(20*time.Second, 200, limits))
	}
	// 60 s at 20/s and one burst of 40 at the start and at each of two changes.
	if total < 20*60 || total > 20*60+3*40 {
		t.Errorf("admitted %d, want 1200 to 1320", total)
	}
}

func TestStartsFromTheLevelLastSeen(t *testing.T) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(100, 10), 1)
	seen := limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: limit.Whole, Tokens: 12}
	l.Observe(epoch, limits, &seen, Terms{Instances: 4})
	admitted := 0
	for range 50 {
		if l.Take(epoch, limits, Terms{Instances: 4}).Outcome == limit.Allowed {
			admitted++
		}
	}
	if admitted != 3 {
		t.Errorf("admitted %d at once, want a quarter of the 12 tokens last seen", admitted)
	}
}

// Case request-path 74: a bucket that was evicted from Redis is seen to be gone.
func TestABucketThatVanishesIsCounted(t *testing.T) {
	limits := one("t1", rule(100, 1), 1)
	saw := func(l *Local, after time.Duration, tokens float64) {
		d := limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: limit.Whole, Tokens: tokens}
		l.Observe(epoch.Add(after), limits, &d, Terms{})
	}
	for name, tc := range map[string]struct {
		happen func(l *Local)
		want   uint64
	}{
		"full a second after it was empty": {func(l *Local) { saw(l, 0, 0); saw(l, time.Second, 99) }, 1},
		"full after the time to fill":      {func(l *Local) { saw(l, 0, 0); saw(l, 101*time.Second, 99) }, 0},
		"used by others too":               {func(l *Local) { saw(l, 0, 90); saw(l, time.Second, 3) }, 0},
		"a few tokens more than it had":    {func(l *Local) { saw(l, 0, 10); saw(l, time.Second, 20) }, 0},
		"decided without redis meanwhile": {func(l *Local) {
			saw(l, 0, 0)
			l.Take(epoch.Add(time.Second), limits, Terms{})
			saw(l, 2*time.Second, 99)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLocal(epoch, 100)
			tc.happen(l)
			if l.Vanished() != tc.want {
				t.Errorf("%d vanished, want %d", l.Vanished(), tc.want)
			}
		})
	}
}

func TestShareThatCounts(t *testing.T) {
	limits := one("t1", rule(100, 10), 1)
	limits[0].Base = 700_000
	moved := one("t1", rule(100, 10), 1)
	moved[0].Base, moved[0].Moved, moved[0].Floor = 700_000, true, 35_000
	seen := limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: 200_000, Tokens: 20}
	for name, tc := range map[string]struct {
		limits  []bucket.Limit
		observe bool
		terms   Terms
		want    limit.Share
	}{
		"never moved":         {limits: limits, terms: Terms{Floor: 35_000}, want: 700_000},
		"last seen":           {limits: limits, observe: true, terms: Terms{Floor: 35_000}, want: 200_000},
		"moved, last seen":    {limits: moved, observe: true, terms: Terms{Floor: 35_000}, want: 200_000},
		"moved, never seen":   {limits: moved, terms: Terms{Floor: 35_000}, want: 35_000},
		"fenced or strict":    {limits: limits, observe: true, terms: Terms{Floor: 35_000, FloorOnly: true}, want: 35_000},
		"floor above a share": {limits: limits, observe: true, terms: Terms{Floor: 500_000, FloorOnly: true}, want: 200_000},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLocal(epoch, 100)
			if tc.observe {
				l.Observe(epoch, tc.limits, &seen, tc.terms)
			}
			if d := l.Take(epoch, tc.limits, tc.terms); d.Share != tc.want {
				t.Errorf("share %d, want %d", d.Share, tc.want)
			}
		})
	}
}

func TestARegionWithoutRightsAdmitsNothing(t *testing.T) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(100, 10), 1)
	limits[0].Base = 0
	for i := range 100 {
		now := epoch.Add(time.Duration(i) * time.Minute)
		if d := l.Take(now, limits, Terms{}); d.Outcome == limit.Allowed {
			t.Fatal("admitted without rights")
		}
	}
}

// Case request-path 58: who is within the region's slice but above the instance's part is told that the service is
// reduced; who is above the slice, that the quota is used up.
func TestTellsReducedCapacityFromQuota(t *testing.T) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(40, 4), 1)
	var got []limit.Outcome
	for range 60 {
		d := l.Take(epoch, limits, Terms{Instances: 4})
		if len(got) == 0 || got[len(got)-1] != d.Outcome {
			got = append(got, d.Outcome)
		}
		if d.Outcome != limit.Allowed && d.RetryAfter <= 0 {
			t.Errorf("%v without a time to come back", d.Outcome)
		}
	}
	if want := []limit.Outcome{limit.Allowed, limit.Unable, limit.Refused}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

func TestRetryAfterIsTrue(t *testing.T) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(7, 3), 1)
	now := epoch
	for range 40 {
		d := l.Take(now, limits, Terms{Instances: 3})
		if d.Outcome == limit.Allowed {
			continue
		}
		if again := l.Take(now.Add(d.RetryAfter-time.Millisecond), limits, Terms{Instances: 3}); again.Outcome == limit.Allowed {
			t.Fatal("admitted before the time it was told")
		}
		now = now.Add(d.RetryAfter)
		if again := l.Take(now, limits, Terms{Instances: 3}); again.Outcome != limit.Allowed {
			t.Fatalf("refused at the time it was told: %+v", again)
		}
	}
}

func TestSeveralLimitsAllOrNone(t *testing.T) {
	l := NewLocal(epoch, 100)
	limits := append(one("t1", rule(50, 1), 1), one("t1", rule(5, 1), 1)...)
	limits[1].Key.Route = limit.TenantRoute
	for i := range 20 {
		d := l.Take(epoch, limits, Terms{})
		if allowed := d.Outcome == limit.Allowed; allowed != (i < 5) {
			t.Fatalf("request %d: %v", i, d.Outcome)
		}
		if d.Key != limits[1].Key {
			t.Fatalf("request %d speaks of %v, want the strictest", i, d.Key)
		}
	}
	if d := l.Take(epoch, limits[:1], Terms{}); d.Remaining != 44 {
		t.Errorf("%d left of the route's own limit, want 44: refusals charge nothing", d.Remaining)
	}
	if owed := l.Claim(epoch, limits[0].Key); owed != 6 {
		t.Errorf("route owes %d, want 6", owed)
	}
	if owed := l.Claim(epoch, limits[1].Key); owed != 5 {
		t.Errorf("tenant owes %d, want 5", owed)
	}
}

func TestTooLargeIsToldApart(t *testing.T) {
	l := NewLocal(epoch, 100)
	if d := l.Take(epoch, one("t1", rule(10, 1), 11), Terms{}); d.Outcome != limit.TooLarge {
		t.Errorf("cost 11 of 10: %v", d.Outcome)
	}
	// Within the capacity, but above this instance's part of it: no time can be promised.
	if d := l.Take(epoch, one("t1", rule(10, 1), 6), Terms{Instances: 2}); d.Outcome != limit.Unable || d.RetryAfter != 0 {
		t.Errorf("cost 6 of a part of 5: %v, retry after %v", d.Outcome, d.RetryAfter)
	}
}

func TestSlidingWindowsAreSpreadOverTheirLength(t *testing.T) {
	l := NewLocal(epoch, 100)
	limits := one("t1", &limit.Rule{Capacity: 60, PeriodSeconds: 1, Algorithm: limit.SlidingWindowCounter, WindowSeconds: 60}, 1)
	admitted := 0
	for s := range 180 {
		if l.Take(epoch.Add(time.Duration(s)*time.Second), limits, Terms{}).Outcome == limit.Allowed {
			admitted++
		}
	}
	if admitted < 178 || admitted > 240 {
		t.Errorf("admitted %d in three windows of 60", admitted)
	}
}

// A quota by the day stays one during an outage: each instance has its part of it until midnight UTC, and of the next then.
func TestFixedWindowsAreKept(t *testing.T) {
	l := NewLocal(epoch, 100) // noon
	limits := one("t1", &limit.Rule{Capacity: 1000, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay}, 1)
	seen := limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: limit.Whole, Tokens: 400}
	terms := Terms{Instances: 4}
	l.Observe(epoch, limits, &seen, terms)
	drain := func(now time.Time) (admitted int, last limit.Decision) {
		for range 1200 {
			if last = l.Take(now, limits, terms); last.Outcome == limit.Allowed {
				admitted++
			}
		}
		return admitted, last
	}
	if n, d := drain(epoch.Add(time.Hour)); n != 100 || d.RetryAfter != 11*time.Hour {
		t.Errorf("%d admitted, retry after %v; want a quarter of the 400 left, and 11h", n, d.RetryAfter)
	}
	if n, _ := drain(epoch.Add(12*time.Hour - time.Second)); n != 0 {
		t.Errorf("%d admitted before midnight", n)
	}
	if n, d := drain(epoch.Add(12 * time.Hour)); n != 250 || d.RetryAfter != 24*time.Hour {
		t.Errorf("%d admitted, retry after %v; want a quarter of 1000, and 24h", n, d.RetryAfter)
	}
}

// Case limits 61: after an outage of three windows the new window is not charged for the ones before.
func TestNoBacklogIsCharged(t *testing.T) {
	for name, tc := range map[string]struct {
		rule *limit.Rule
		want int64
	}{
		// 10 s into the window: what was admitted in it, the whole 60 at its beginning.
		"fixed window": {&limit.Rule{Capacity: 60, PeriodSeconds: 1, Algorithm: limit.FixedWindow, WindowSeconds: 60}, 60},
		// One a second came and one a second was used since the burst: 60 are missing, not the 250 admitted.
		"token bucket": {rule(60, 1), 60},
	} {
		t.Run(name, func(t *testing.T) {
			l, limits := NewLocal(epoch, 100), one("t1", tc.rule, 1)
			now := epoch
			for s := range 190 {
				now = epoch.Add(time.Duration(s) * time.Second)
				for range 61 {
					l.Take(now, limits, Terms{})
				}
			}
			if owed := l.Claim(now, limits[0].Key); owed != tc.want {
				t.Errorf("owed %d, want %d", owed, tc.want)
			}
			l.Take(now, limits, Terms{})
			if owed := l.Claim(now.Add(2*time.Minute), limits[0].Key); owed != 0 {
				t.Errorf("owed %d two minutes later, want nothing", owed)
			}
		})
	}
}

// Whatever happens, an instance admits at most its burst plus its rate, and never negative levels are shown.
func TestNeverAboveItsPart(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	l, limits := NewLocal(epoch, 100), one("t1", rule(30, 6), 1)
	now, admitted := epoch, 0.0
	for range 20_000 {
		now = now.Add(time.Duration(rnd.IntN(20)) * time.Millisecond)
		limits[0].Cost = int64(1 + rnd.IntN(3))
		d := l.Take(now, limits, Terms{Instances: 3})
		if d.Outcome == limit.Allowed {
			admitted += float64(limits[0].Cost)
		}
		if d.Remaining < 0 || d.Remaining > 10 {
			t.Fatalf("remaining %d", d.Remaining)
		}
		if most := 10 + 2*now.Sub(epoch).Seconds(); admitted > most+1e-6 {
			t.Fatalf("admitted %.0f after %v, at most %.2f", admitted, now.Sub(epoch), most)
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(1e6, 1e6), 1)
	now := epoch
	d := limit.Decision{Key: limits[0].Key, Rule: limits[0].Rule, Share: limit.Whole, Tokens: 5}
	for name, f := range map[string]func(){
		"take":    func() { now = now.Add(time.Millisecond); l.Take(now, limits, Terms{}) },
		"observe": func() { now = now.Add(time.Millisecond); l.Observe(now, limits, &d, Terms{}) },
	} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(1e6, 1e6), 1)
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		l.Take(now, limits, Terms{})
	}
}
