package bucket

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"partidor.dev/partidor/shared/limit"
)

// The conformance suite: random sequences of operations over the exact definition (model_test.go), the memory store and the
// shipped scripts on a real Redis. Memory and Redis must agree to the last bit; both with the definition, except where
// level and cost are closer than doubles can tell.
func TestTokenBucketConformance(t *testing.T) {
	conformance(t, drawRule, true)
}

// TestMixedConformance lets rules of all algorithms follow one another on the same keys. Their definitions are in
// window_test.go; here memory and Redis must agree.
func TestMixedConformance(t *testing.T) {
	conformance(t, drawAnyRule, false)
}

func conformance(t *testing.T, draw func(*rapid.T, string) *limit.Rule, defined bool) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		w.reset()
		s := &story{world: w, rt: rt, defined: defined, exact: map[limit.Key]*exact{}}
		s.rules = []*limit.Rule{draw(rt, "rule0"), draw(rt, "rule1"), draw(rt, "rule2")}
		for i := range s.bases {
			s.bases[i] = rapid.SampledFrom([]limit.Share{700_000, limit.Whole, 333_333, 0, 1}).Draw(rt, "base")
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			s.step()
		}
	})
}

type story struct {
	*world
	rt    *rapid.T
	rules []*limit.Rule
	bases [3]limit.Share
	// defined: the exact definition is followed too.
	defined bool
	exact   map[limit.Key]*exact
}

var storyKeys = []limit.Key{{Tenant: "shop-a", Route: "orders"}, {Tenant: "shop-a", Route: limit.TenantRoute}, {Tenant: "b:{c}%", Route: "d:e"}}

// drawRule draws any rule that can be written: ordinary ones, and the corners of what is allowed.
func drawRule(rt *rapid.T, name string) *limit.Rule {
	r := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) *limit.Rule {
			return &limit.Rule{
				Capacity: rapid.Int64Range(1, 300).Draw(t, "capacity"), Refill: rapid.Int64Range(1, 200).Draw(t, "refill"),
				PeriodSeconds: rapid.SampledFrom([]int64{1, 1, 7, 60, 3600}).Draw(t, "period"),
			}
		}),
		rapid.Custom(func(t *rapid.T) *limit.Rule {
			period := rapid.Int64Range(1, limit.MaxPeriodSeconds).Draw(t, "period")
			return &limit.Rule{
				Capacity:      rapid.Int64Range(1, limit.MaxTokens).Draw(t, "capacity"),
				Refill:        rapid.Int64Range(1, min(limit.MaxTokens, limit.MaxRefillPerSecond*period)).Draw(t, "refill"),
				PeriodSeconds: period,
			}
		}),
		rapid.SampledFrom([]*limit.Rule{
			{Capacity: limit.MaxTokens, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds},
			{Capacity: limit.MaxTokens, Refill: limit.MaxRefillPerSecond, PeriodSeconds: 1},
			{Capacity: 1, Refill: limit.MaxRefillPerSecond, PeriodSeconds: 1},
			{Capacity: 1, Refill: 1, PeriodSeconds: limit.MaxPeriodSeconds},
		}),
	).Draw(rt, name)
	if err := r.Validate(); err != nil {
		rt.Fatalf("drew a rule that cannot be written: %v", err)
	}
	return r
}

func drawAnyRule(rt *rapid.T, name string) *limit.Rule {
	r := &limit.Rule{
		Capacity: rapid.Int64Range(1, 60).Draw(rt, name+" capacity"), PeriodSeconds: 1,
		Algorithm: limit.Algorithm(rapid.IntRange(0, 3).Draw(rt, name+" algorithm")),
	}
	switch {
	case r.Algorithm == limit.TokenBucket:
		r.Refill = rapid.Int64Range(1, 60).Draw(rt, name+" refill")
	case r.Algorithm == limit.FixedWindow && rapid.Bool().Draw(rt, name+" on the calendar"):
		r.Calendar = limit.Calendar(rapid.IntRange(1, 3).Draw(rt, name+" calendar"))
	default:
		r.WindowSeconds = rapid.SampledFrom([]int64{1, 7, 60, 86_400}).Draw(rt, name+" window")
	}
	if err := r.Validate(); err != nil {
		rt.Fatalf("drew a rule that cannot be written: %v", err)
	}
	return r
}

func (s *story) step() {
	switch rapid.IntRange(0, 11).Draw(s.rt, "what") {
	case 0, 1, 2:
		s.advance(rapid.SampledFrom([]int64{1, 999, 100_000, 333_333, 1_000_000, 60_000_000}).Draw(s.rt, "elapsed"))
	case 3:
		jump := rapid.Int64Range(-3_600_000_000, 3_600_000_000_000).Draw(s.rt, "jump")
		for _, k := range storyKeys {
			s.touch(k)
		}
		s.advance(jump)
	case 4:
		s.grant()
	default:
		s.take()
	}
}

// take sends one request of one or two limits, and compares.
func (s *story) take() {
	keys := rapid.SampledFrom([][]limit.Key{storyKeys[:1], storyKeys[:1], storyKeys[:2], storyKeys[2:]}).Draw(s.rt, "keys")
	limits := make([]Limit, len(keys))
	for i, k := range keys {
		limits[i] = s.limit(k)
	}
	var gaps []*big.Rat
	if s.defined {
		gaps = s.definition(limits)
	}
	got, err := s.redis.Take(context.Background(), limits)
	if err != nil {
		s.rt.Fatalf("redis: %v", err)
	}
	mem, err := s.memory.Take(context.Background(), limits)
	if err != nil {
		s.rt.Fatalf("memory: %v", err)
	}
	if diff := cmp.Diff(mem, got, cmpopts.IgnoreFields(limit.Decision{}, "Source")); diff != "" {
		s.rt.Fatalf("memory (-) and redis (+) disagree on %v:\n%s", limits, diff)
	}
	s.compareState(keys)
	if s.defined {
		s.judge(limits, gaps, got)
	}
}

func storyRevision(i int) limit.Revision {
	return limit.Revision{Epoch: int64(i / 2), Number: int64(1 + i%2)}
}

func (s *story) limit(k limit.Key) Limit {
	i := rapid.IntRange(0, len(s.rules)-1).Draw(s.rt, "which rule")
	l := Limit{Key: k, Rule: s.rules[i], Revision: storyRevision(i)}
	l.Base = s.bases[i]
	c := l.Rule.Capacity
	l.Cost = rapid.SampledFrom([]int64{0, 1, 1, 1, 2, 10, c / 2, c, min(c+1, limit.MaxTokens)}).Draw(s.rt, "cost")
	l.Owed = rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 1, 7, c, -1, -c / 3}).Draw(s.rt, "owed")
	l.Ahead = rapid.SampledFrom([]int64{0, 0, 0, 0, 5, c}).Draw(s.rt, "ahead")
	l.Late = rapid.SampledFrom([]limit.Share{0, 0, 0, l.Base / 3, l.Base}).Draw(s.rt, "late")
	return l
}

// touch makes a bucket keep the level of this moment: a token owed and given back, for nothing else. Otherwise the stores, which
// write nothing for a request that takes nothing, would rightly count on from an earlier one.
func (s *story) touch(k limit.Key) {
	st, ok := s.memory.state(k)
	if !ok {
		return
	}
	for i, r := range s.rules {
		l := Limit{Key: k, Rule: r, Revision: storyRevision(i), Base: s.bases[i], Owed: 1}
		if l.Revision != st.Revision {
			continue
		}
		for range 2 {
			_, err := s.redis.Take(context.Background(), []Limit{l})
			if err != nil {
				s.rt.Fatal(err)
			}
			_, _ = s.memory.Take(context.Background(), []Limit{l})
			if s.defined {
				s.definition([]Limit{l})
			}
			l.Owed = -1
		}
	}
}

// grant sets rights, as a transfer would: time that rounding left unspent is dropped.
func (s *story) grant() {
	k := rapid.SampledFrom(storyKeys).Draw(s.rt, "whose rights")
	s.touch(k)
	st, ok := s.memory.state(k)
	if !ok {
		return
	}
	r := Rights{Moved: true, Share: rapid.SampledFrom([]limit.Share{700_000, 1, 0, limit.Whole}).Draw(s.rt, "share")}
	r.Floor = min(r.Share, rapid.SampledFrom([]limit.Share{0, 35_000}).Draw(s.rt, "floor"))
	r.Held = rapid.SampledFrom([]int64{0, 0, 3, st.Numbers.Capacity}).Draw(s.rt, "held")
	s.memory.grant(k, r, s.now)
	if s.defined {
		s.exact[k].rights = r
	}
	err := s.client.HSet(context.Background(), k.Redis(), "share", int64(r.Share), "held", r.Held, "floor", int64(r.Floor),
		"ts", fmt.Sprintf("%d.%03d", s.now/1000, s.now%1000)).Err()
	if err != nil {
		s.rt.Fatal(err)
	}
}

func (s *story) compareState(keys []limit.Key) {
	for _, k := range keys {
		st, ok := s.memory.state(k)
		f := s.fields(k)
		if !ok {
			if len(f) != 0 {
				s.rt.Fatalf("%v: nothing in memory, in redis %v", k, f)
			}
			continue
		}
		want := map[string]string{
			"tokens": strconv.FormatFloat(st.Tokens, 'g', 17, 64), "rev": st.Revision.String(),
			"ts":   fmt.Sprintf("%d.%03d", st.At/1000, st.At%1000),
			"rule": string(st.Numbers.appendText(nil, ' ')),
		}
		tokens, _ := strconv.ParseFloat(f["tokens"], 64)
		if tokens == st.Tokens {
			want["tokens"] = f["tokens"] // Go and C write exponents differently
		}
		if st.Numbers.Algorithm != limit.TokenBucket {
			want["used"] = strconv.FormatFloat(st.Used, 'g', 17, 64)
			want["prev"] = strconv.FormatFloat(st.Prev, 'g', 17, 64)
			s.compareLog(k, st.Log)
		} else {
			delete(f, "used")
			delete(f, "prev")
		}
		delete(f, "seq")
		delete(f, "share")
		delete(f, "held")
		delete(f, "floor")
		if diff := cmp.Diff(want, f); diff != "" {
			s.rt.Fatalf("%v: memory (-) and redis (+) hold different states:\n%s", k, diff)
		}
	}
}

func (s *story) compareLog(k limit.Key, want []int64) {
	if len(want) == 0 {
		return
	}
	got, err := s.client.ZRangeWithScores(context.Background(), k.Redis()+":log", 0, -1).Result()
	if err != nil || len(got) != len(want) {
		s.rt.Fatalf("%v: log of %d in memory, of %d in redis, %v", k, len(want), len(got), err)
	}
	for i, z := range got {
		if int64(z.Score) != want[i] {
			s.rt.Fatalf("%v: entry %d of the log is %d in memory, %v in redis", k, i, want[i], z)
		}
	}
}

// definition opens and settles the exact buckets and gives what is in each, and the gap between level and cost.
func (s *story) definition(limits []Limit) (gaps []*big.Rat) {
	for i := range limits {
		l := &limits[i]
		x := s.exact[l.Key]
		if x == nil {
			x = &exact{}
			s.exact[l.Key] = x
		}
		x.open(l, s.now)
		x.settleOwed(l.Owed)
		gaps = append(gaps, new(big.Rat).Sub(x.level, rat(l.Cost, 1)))
	}
	return gaps
}

// judge compares a decision with the definition and lets the definition follow it.
func (s *story) judge(limits []Limit, gaps []*big.Rat, d limit.Decision) {
	fits, sure := true, true
	for i := range limits {
		x := s.exact[limits[i].Key]
		gap, _ := gaps[i].Float64()
		if math.Abs(gap) <= s.blur(x) {
			sure = false
		}
		if gap < 0 || limits[i].Cost > x.rule.Capacity {
			fits = false
		}
	}
	if sure && fits != (d.Outcome == limit.Allowed) {
		s.rt.Fatalf("definition says fits=%v (%v), decision %+v on %+v", fits, gaps, d, limits)
	}
	for i := range limits {
		l, x := &limits[i], s.exact[limits[i].Key]
		if d.Outcome == limit.Allowed {
			x.take(l.Cost + d.Ahead)
		}
		x.forget()
		if l.Key != d.Key {
			continue
		}
		level, _ := x.level.Float64()
		if diff := math.Abs(level - d.Tokens); diff > s.blur(x) {
			s.rt.Fatalf("level %v, by definition %v, off by %v", d.Tokens, level, diff)
		}
		if d.Remaining < 0 || d.Remaining > x.rule.Capacity {
			s.rt.Fatalf("remaining %d of %d", d.Remaining, x.rule.Capacity)
		}
	}
}

// blur is how far doubles may stray from the definition: a step of a level for every write, and a few steps of the largest capacity the bucket has had.
func (s *story) blur(x *exact) float64 {
	return 2e-6 + float64(x.largest)*0x1p-46
}
