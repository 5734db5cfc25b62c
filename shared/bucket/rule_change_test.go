package bucket

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Changes of rule and share while a bucket has state: limits.md A, request-path.md G.

func revised(r *limit.Rule, number int64) []Limit {
	l := one(r, 1)
	l[0].Revision.Number = number
	return l
}

// Spend 10 of 10 an hour, then 1000/s: admitted a second later, by the new rule's numbers only. (limits A1)
func TestRaisedRateTakesEffectAtOnce(t *testing.T) {
	w := newWorld(t)
	w.reset()
	slow := revised(&limit.Rule{Capacity: 10, Refill: 10, PeriodSeconds: 3600}, 1)
	fast := revised(&limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}, 2)
	for range 10 {
		mustTake(t, w.redis, slow)
	}
	if d := mustTake(t, w.redis, fast); d.Outcome != limit.Refused || d.RetryAfter != time.Millisecond {
		t.Errorf("a change of rule refilled: %v, retry after %v", d.Outcome, d.RetryAfter)
	}
	w.advance(1_000_000)
	if d := mustTake(t, w.redis, fast); d.Outcome != limit.Allowed || d.Remaining != 999 || d.Rule != fast[0].Rule {
		t.Errorf("a second after the change: %+v", d)
	}
}

// Lowering clamps what is stored, and the first refusal's wait is true. (limits A2, A4, A7; request-path G80)
func TestLoweredCapacityClamps(t *testing.T) {
	w := newWorld(t)
	w.reset()
	mustTake(t, w.redis, revised(&limit.Rule{Capacity: 5_000_000, Refill: 1000, PeriodSeconds: 1}, 1))
	low := revised(&limit.Rule{Capacity: 10, Refill: 1, PeriodSeconds: 1}, 2)
	for i := range 10 {
		if d := mustTake(t, w.redis, low); d.Outcome != limit.Allowed || d.Remaining != int64(9-i) {
			t.Fatalf("request %d: %v, remaining %d", i, d.Outcome, d.Remaining)
		}
	}
	d := mustTake(t, w.redis, low)
	if d.Outcome != limit.Refused || d.RetryAfter > time.Second {
		t.Fatalf("11th: %v, retry after %v", d.Outcome, d.RetryAfter)
	}
	w.advance(d.RetryAfter.Microseconds())
	if d = mustTake(t, w.redis, low); d.Outcome != limit.Allowed {
		t.Errorf("after Retry-After: %v", d.Outcome)
	}
}

// A split rewritten every second, at ten times the load: what is admitted stays within rate × time and one burst.
// (limits A5; request-path G82)
func TestRewritingTheSplitRefillsNobody(t *testing.T) {
	w := newWorld(t)
	w.reset()
	rule := &limit.Rule{Capacity: 100, Refill: 100, PeriodSeconds: 1}
	admitted := 0
	for second := range 60 {
		l := revised(rule, int64(second+1))
		l[0].Base = []limit.Share{700_000, 690_000}[second%2]
		for range 100 {
			for range 10 {
				if mustTake(t, w.memory, l).Outcome == limit.Allowed {
					admitted++
				}
			}
			w.advance(10_000)
		}
	}
	if admitted > 60*70+70 || admitted < 60*69 {
		t.Errorf("admitted %d in 60 s", admitted)
	}
}

// Two gateways, one already on the new rule: one bucket, and the newer rule for both, from the first request on. (limits A8, A11)
func TestStaleCallerLoses(t *testing.T) {
	w := newWorld(t)
	w.reset()
	old := revised(&limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}, 1)
	young := revised(&limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1}, 2)
	mustTake(t, w.redis, old)
	mustTake(t, w.redis, young)
	for range 5 {
		d := mustTake(t, w.redis, old)
		if d.Outcome != limit.Refused || d.Rule.Capacity != 1 || d.Revision.Number != 2 {
			t.Fatalf("a stale caller was answered %v by %+v at %v", d.Outcome, d.Rule, d.Revision)
		}
	}
}

// A refusal counts as having heard of the newer rule too.
func TestRefusalKeepsTheNewerRevision(t *testing.T) {
	w := newWorld(t)
	w.reset()
	old := revised(&limit.Rule{Capacity: 10, Refill: 10, PeriodSeconds: 1}, 1)
	for range 10 {
		mustTake(t, w.redis, old)
	}
	young := revised(&limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 3600}, 2)
	if d := mustTake(t, w.redis, young); d.Outcome != limit.Refused {
		t.Fatalf("drained, yet %v", d.Outcome)
	}
	w.advance(1_000_000)
	if d := mustTake(t, w.redis, old); d.Outcome != limit.Refused {
		t.Errorf("the old rule still decides: %v", d.Outcome)
	}
}

// Deleted and created again: tokens belong to the key, not to the rule. (request-path G83)
func TestRecreatedRuleKeepsTokens(t *testing.T) {
	w := newWorld(t)
	w.reset()
	for range 5 {
		mustTake(t, w.redis, revised(&limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 3600}, 1))
	}
	if d := mustTake(t, w.redis, revised(&limit.DefaultRule, 2)); d.Outcome != limit.Refused || d.Remaining != 0 {
		t.Errorf("after the deletion: %v, remaining %d", d.Outcome, d.Remaining)
	}
}

// A default rule changed in the configuration has no newer revision; the caller's word counts, tokens are kept and clamped.
func TestSameRevisionOtherNumbers(t *testing.T) {
	w := newWorld(t)
	w.reset()
	mustTake(t, w.redis, revised(&limit.Rule{Capacity: 20, Refill: 10, PeriodSeconds: 1}, 0))
	if d := mustTake(t, w.redis, revised(&limit.Rule{Capacity: 5, Refill: 10, PeriodSeconds: 1}, 0)); d.Remaining != 4 {
		t.Errorf("remaining %d, want 4", d.Remaining)
	}
	if got := w.fields(orders)["rule"]; got != "5 10 1 1000000" {
		t.Errorf("rule %q", got)
	}
}
