package fallback

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errAway = errors.New("connection refused")

// bench drives a breaker in virtual time.
type bench struct {
	*testing.T
	b       *Breaker
	changes []string
}

func newBench(t *testing.T, o BreakerOptions) *bench {
	k := &bench{T: t}
	o.OnChange = func(_ time.Time, from, to State) { k.changes = append(k.changes, from.String()+"→"+to.String()) }
	k.b = NewBreaker(o)
	return k
}

// call makes one call that takes so long and ends so; it tells whether it was let through.
func (k *bench) call(took time.Duration, err error) bool {
	p, ok := k.b.Acquire(time.Now())
	if !ok {
		return false
	}
	time.Sleep(took)
	k.b.Done(time.Now(), p, took, err)
	return true
}

func (k *bench) calls(n int, took time.Duration, err error) (through int) {
	for range n {
		if k.call(took, err) {
			through++
		}
	}
	return through
}

func (k *bench) want(s State) {
	k.Helper()
	if got := k.b.State(); got != s {
		k.Fatalf("state %v, want %v", got, s)
	}
}

func TestBreakerOpensOnErrorsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{})
		k.calls(100, time.Millisecond, nil)
		k.want(Closed)
		if through := k.calls(500, time.Millisecond, errAway); through > 110 {
			t.Errorf("%d failing calls were let through, want about as many as succeeded before", through)
		}
		k.want(Open)
		if k.call(0, nil) {
			t.Error("an open breaker let a call through")
		}
		if r := k.b.RetryAfter(time.Now()); r <= 0 || r > 320*time.Millisecond {
			t.Errorf("retry after %v", r)
		}
		time.Sleep(320 * time.Millisecond)
		if n := k.calls(3, time.Millisecond, nil); n != 3 {
			t.Fatalf("%d of 3 trials let through", n)
		}
		k.want(Closed)
		want := []string{"closed→open", "open→half-open", "half-open→closed"}
		if d := cmp.Diff(want, k.changes); d != "" {
			t.Errorf("changes (-want +got):\n%s", d)
		}
	})
}

func TestBreakerOpensOnSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{Slow: 5 * time.Millisecond})
		k.calls(100, 4*time.Millisecond, nil)
		k.want(Closed)
		k.calls(200, 6*time.Millisecond, nil)
		k.want(Open)
	})
}

func TestBreakerStaysClosedUnderFewFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{})
		for range 200 {
			k.calls(3, time.Millisecond, nil)
			k.call(time.Millisecond, errAway)
		}
		k.want(Closed)
	})
}

// With one call a second the rate rule never has its 20 calls: a server that only fails is noticed all the same.
func TestBreakerOpensWhereCallsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{})
		for range 3 {
			k.want(Closed)
			k.call(time.Millisecond, errAway)
			time.Sleep(time.Second)
		}
		k.want(Open)
	})
}

func TestBreakerWaitsLongerAfterEachFailedTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{Delay: 200 * time.Millisecond, MaxDelay: time.Second})
		k.calls(50, time.Millisecond, errAway)
		for _, want := range []time.Duration{200, 400, 800, 1000, 1000} {
			want *= time.Millisecond
			k.want(Open)
			wait := k.b.RetryAfter(time.Now())
			if wait < want*3/4-2*time.Millisecond || wait > want*5/4 {
				t.Errorf("wait %v, want %v ± a quarter", wait, want)
			}
			time.Sleep(wait)
			if n := k.calls(5, time.Millisecond, errAway); n != 1 {
				t.Errorf("%d trials after one failed", n)
			}
		}
		time.Sleep(k.b.RetryAfter(time.Now()))
		k.calls(3, time.Millisecond, nil)
		k.calls(50, time.Millisecond, errAway)
		if wait := k.b.RetryAfter(time.Now()); wait > 250*time.Millisecond {
			t.Errorf("wait %v after it had been closed, want the first wait again", wait)
		}
	})
}

func TestBreakerLetsThreeTrialsRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{})
		k.calls(50, time.Millisecond, errAway)
		time.Sleep(k.b.RetryAfter(time.Now()))
		var permits []Permit
		for range 10 {
			if p, ok := k.b.Acquire(time.Now()); ok {
				permits = append(permits, p)
			}
		}
		if len(permits) != trials {
			t.Fatalf("%d trials at once, want %d", len(permits), trials)
		}
		for _, p := range permits {
			k.b.Done(time.Now(), p, time.Millisecond, nil)
		}
		k.want(Closed)
	})
}

// A call begun before the breaker opened may end during the trials: it says nothing of the server as it is now.
func TestBreakerIgnoresResultsOfAnEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBench(t, BreakerOptions{})
		late, ok := k.b.Acquire(time.Now())
		if !ok {
			t.Fatal("closed breaker refused")
		}
		k.calls(50, time.Millisecond, errAway)
		time.Sleep(k.b.RetryAfter(time.Now()))
		k.call(time.Millisecond, nil)
		k.want(HalfOpen)
		k.b.Done(time.Now(), late, time.Second, errAway)
		k.want(HalfOpen)
		k.calls(2, time.Millisecond, nil)
		k.want(Closed)
	})
}

func TestBreakerAllocatesNothing(t *testing.T) {
	b := NewBreaker(BreakerOptions{})
	now := time.Now()
	n := testing.AllocsPerRun(1000, func() {
		p, _ := b.Acquire(now)
		b.Done(now, p, time.Millisecond, nil)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBreaker(b *testing.B) {
	k := NewBreaker(BreakerOptions{})
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := k.Acquire(now)
		k.Done(now, p, time.Millisecond, nil)
	}
}
