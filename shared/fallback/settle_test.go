package fallback

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

func TestWhatIsAdmittedIsOwedOnce(t *testing.T) {
	l, limits := NewLocal(epoch, 100), one("t1", rule(10, 1), 3)
	if l.Owing() || l.Claim(epoch, limits[0].Key) != 0 {
		t.Error("something is owed before anything was admitted")
	}
	l.Take(epoch, limits, Terms{})
	l.Take(epoch, limits, Terms{})
	if !l.Owing() {
		t.Error("nothing is owed")
	}
	if owed := l.Claim(epoch, limits[0].Key); owed != 6 {
		t.Errorf("owed %d, want 6", owed)
	}
	if l.Owing() || l.Claim(epoch, limits[0].Key) != 0 {
		t.Error("a debt was handed out twice")
	}
	l.Restore(limits[0].Key, 6)
	if owed := l.Claim(epoch, limits[0].Key); owed != 6 {
		t.Errorf("restored %d, want 6", owed)
	}
}

func TestDebtsOfKeysThatDoNotComeBack(t *testing.T) {
	l := NewLocal(epoch, 1000)
	for i := range 50 {
		limits := one("t"+strconv.Itoa(i), rule(10, 1), 2)
		limits[0].Revision = limit.Revision{Number: 7}
		l.Take(epoch, limits, Terms{})
	}
	seen := make(map[limit.Key]bool)
	for range 3 {
		debts := l.Debts(epoch, nil, 20)
		if len(debts) > 20 {
			t.Fatalf("%d debts at once", len(debts))
		}
		for _, d := range debts {
			if seen[d.Key] || d.Owed != 2 || d.Cost != 0 || d.Rule == nil || d.Revision.Number != 7 {
				t.Errorf("debt %+v", d)
			}
			seen[d.Key] = true
		}
	}
	if len(seen) != 50 || l.Owing() {
		t.Errorf("%d debts handed out, still owing: %v", len(seen), l.Owing())
	}
}

// Cases limits 76 and 77: many times more tenants than there is room for pass through the fallback; memory stays flat and
// debts are bounded by what is remembered. (BenchmarkMillionTenants does it with a million and reports the bytes.)
func TestManyMoreTenantsThanRoom(t *testing.T) {
	const most, tenants = 2_000, 60_000
	l := NewLocal(epoch, most)
	r := rule(10, 1)
	now := epoch
	for i := range tenants {
		now = epoch.Add(time.Duration(i) * time.Microsecond)
		l.Take(now, one("t"+strconv.Itoa(i), r, 1), Terms{})
	}
	if l.Len() > most || l.Evicted() < tenants-most {
		t.Errorf("%d keys remembered, %d forgotten", l.Len(), l.Evicted())
	}
	debts := l.Debts(now, nil, 2*most)
	if len(debts) > most || l.Owing() {
		t.Errorf("%d debts, still owing: %v", len(debts), l.Owing())
	}
}

func BenchmarkMillionTenants(b *testing.B) {
	r := rule(10, 1)
	names := make([]string, 1_000_000)
	for i := range names {
		names[i] = "tenant-" + strconv.Itoa(i)
	}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := NewLocal(epoch, DefaultMaxBuckets)
		for i, name := range names {
			l.Take(epoch.Add(time.Duration(i)*time.Microsecond), one(name, r, 1), Terms{})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		b.ReportMetric(float64(l.Len()), "keys")
		runtime.KeepAlive(l)
	}
}

// Case request-path 76: an abuser among one-shot callers, twenty times more than there is room for, gets no more than its slice.
func TestAbuserIsNotPushedOut(t *testing.T) {
	l := NewLocal(epoch, 2_000)
	r := rule(20, 2)
	abuser := one("abuser", r, 1)
	admitted, now := 0, epoch
	for i := range 40_000 {
		now = now.Add(100 * time.Microsecond)
		l.Take(now, one("t"+strconv.Itoa(i), r, 1), Terms{})
		if i%10 == 0 && l.Take(now, abuser, Terms{}).Outcome == limit.Allowed {
			admitted++
		}
	}
	// Were it pushed out once or twice all the same, it would begin with a token each time.
	if most := 20 + int(2*now.Sub(epoch).Seconds()) + 2; admitted > most {
		t.Errorf("admitted %d in %v, want at most %d", admitted, now.Sub(epoch), most)
	}
}

// Even one that is pushed out does not come back full while memory is short.
func TestAForgottenBucketStartsWithOneToken(t *testing.T) {
	l := NewLocal(epoch, 8)
	r := rule(1000, 1)
	for i := range 100 {
		l.Take(epoch, one("t"+strconv.Itoa(i), r, 1), Terms{})
	}
	back := one("t0", r, 1)
	if d := l.Take(epoch, back, Terms{}); d.Outcome != limit.Allowed || d.Remaining != 0 {
		t.Errorf("first request: %v with %d left, want allowed with none", d.Outcome, d.Remaining)
	}
	// Once those remembered have filled up again, forgetting one loses nothing: a newcomer is an ordinary one.
	later := epoch.Add(time.Hour)
	l.Take(later, back, Terms{})
	if d := l.Take(later, one("new", r, 1), Terms{}); d.Remaining != 999 {
		t.Errorf("a newcomer has %d left, want its whole part", d.Remaining)
	}
}

func TestManyGoroutinesOweExactlyWhatTheyAdmitted(t *testing.T) {
	l := NewLocal(epoch, 64) // too small on purpose: keys push each other out
	r := rule(1_000_000, 1)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2_000 {
				limits := one("t"+strconv.Itoa((i+g)%200), r, 1)
				l.Take(epoch, limits, Terms{})
				if i%5 == 0 {
					l.Restore(limits[0].Key, l.Claim(epoch, limits[0].Key))
				}
			}
		})
	}
	wg.Wait()
	l.Debts(epoch, nil, 1000)
	if n := l.owing.Load(); n != 0 {
		t.Errorf("%d keys are counted as owing after all debts were claimed", n)
	}
}

// Case limits 67: Redis goes and comes every 5 s for a minute at ten times the limit. With debts settled and levels kept warm,
// everything admitted stays within one burst and the rate.
func TestFlappingMintsNoBursts(t *testing.T) {
	for _, instances := range []int{1, 4} {
		store := bucket.NewMemory(func() time.Time { return clock })
		clock = epoch
		limits := one("t1", rule(100, 50), 1)
		var locals []*Local
		for range instances {
			locals = append(locals, NewLocal(epoch, 100))
		}
		admitted := 0
		for step := range 60_000 / 2 {
			clock = epoch.Add(time.Duration(step) * 2 * time.Millisecond)
			l, terms := locals[step%instances], Terms{Instances: instances}
			if (step*2/5000)%2 == 1 {
				if l.Take(clock, limits, terms).Outcome == limit.Allowed {
					admitted++
				}
				continue
			}
			ask := []bucket.Limit{limits[0]}
			ask[0].Owed = l.Claim(clock, ask[0].Key)
			d, err := store.Take(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			l.Observe(clock, ask, &d, terms)
			if d.Outcome == limit.Allowed {
				admitted++
			}
		}
		// One burst and the rate, and a token per instance for what the parts round up to.
		if least, most := 3069, 3100+instances; admitted < least || admitted > most {
			t.Errorf("%d instances admitted %d in 60 s, want %d to %d", instances, admitted, least, most)
		}
	}
}

var clock time.Time
