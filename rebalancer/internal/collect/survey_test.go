package collect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// A survey says what the demand says, in the same order, while keys come, are used and are forgotten.
func TestSurveyAgreesWithDemand(t *testing.T) {
	tb, _ := testTable(Options{ForgetAfter: time.Minute})
	g := newGateway("eu", "g1", 0)
	regions := []string{"eu", "us"}
	keyOf := func(i int) limit.Key {
		return limit.Key{Tenant: fmt.Sprintf("t%03d", i*37%200), Route: fmt.Sprintf("r%d", i%3)}
	}
	var now time.Duration
	for step := range 60 {
		now += 5 * time.Second
		for i := range 10 {
			g.serve(keyOf(step*10+i), uint64(1+i), uint64(i%2))
		}
		tb.Usage(now, g.report(now))
		tb.Sweep(now)
		demand, survey := tb.Demand(now, regions), tb.Survey(now, regions)
		if len(survey.Keys) != len(demand) || len(survey.Rates) != 2*len(demand) || !slices.IsSortedFunc(survey.Keys, CompareKeys) {
			t.Fatalf("step %d: %d keys and %d rates for %d keys of demand", step, len(survey.Keys), len(survey.Rates), len(demand))
		}
		for i, d := range demand {
			want := Rate{float32(d.Loads[0].Offered), float32(d.Loads[0].Refused)}
			if survey.Keys[i] != d.Key || survey.Rates[2*i] != want || survey.Rates[2*i+1] != (Rate{}) {
				t.Fatalf("step %d: %s %v, want %s %v", step, survey.Keys[i], survey.Rates[2*i], d.Key, want)
			}
		}
		for _, l := range tb.Loads(now, []limit.Key{keyOf(step * 10), {Tenant: "nobody", Route: "r"}}, regions) {
			if l.Key.Tenant == "nobody" && l.Loads[0].Known || l.Key.Tenant != "nobody" && l.Loads[0].Share == 0 {
				t.Fatalf("step %d: %+v", step, l)
			}
		}
	}
	if n := len(tb.Survey(now, regions).Keys); n == 0 || n >= 200 {
		t.Errorf("%d keys are kept, want those of the last minute", n)
	}
}

// BenchmarkSurvey is what a look at 300,000 keys in two regions costs, beside the whole demand that a cycle needs.
func BenchmarkSurvey(b *testing.B) {
	tb := NewTable(Options{}, func(string, int) {})
	regions := []string{"eu", "us"}
	now := time.Minute
	for _, region := range regions {
		g := newGateway(region, "g1", 0)
		for i := range 300_000 {
			g.serve(limit.Key{Tenant: fmt.Sprintf("tenant-%06d", i/3), Route: fmt.Sprintf("route-%d", i%3)}, uint64(i%50), uint64(i%7))
		}
		tb.Usage(now, g.report(now))
	}
	tb.Survey(now, regions) // sorts, once
	b.Run("survey", func(b *testing.B) {
		b.ReportAllocs()
		used := cpuTime(b)
		defer func() { b.ReportMetric(float64((cpuTime(b)-used).Milliseconds())/float64(b.N), "cpu-ms/op") }()
		for b.Loop() {
			if s := tb.Survey(now, regions); len(s.Keys) != 300_000 {
				b.Fatal(len(s.Keys))
			}
		}
	})
	b.Run("demand", func(b *testing.B) {
		b.ReportAllocs()
		used := cpuTime(b)
		defer func() { b.ReportMetric(float64((cpuTime(b)-used).Milliseconds())/float64(b.N), "cpu-ms/op") }()
		for b.Loop() {
			if d := tb.Demand(now, regions); len(d) != 300_000 {
				b.Fatal(len(d))
			}
		}
	})
}
