package cycle

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/rebalancer/internal/advise"
	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

var key = limit.Key{Tenant: "a", Route: "r"}

// rig is a runner among fakes: a ledger in memory that can fail, regions that offer what the test says.
type rig struct {
	mu      sync.Mutex
	mirror  ledger.Mirror
	fail    error
	commits []ledger.Decision
	advised []advise.Cycle
	moves   []plan.Move
	loads   []plan.Load
	// expected are the regions that ought to be heard.
	expected []string
	*Runner
}

func newRig(t *testing.T) *rig {
	t.Helper()
	rules := ledger.NewRules()
	rules.Set("a", "r", &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1})
	r := &rig{
		mirror: ledger.Mirror{Rules: rules, Parameters: map[string]ledger.Parameter{}, Splits: map[limit.Key]ledger.Split{}, Regions: []ledger.Region{
			{Name: "eu", Base: 700_000, Published: 700_000, State: ledger.RegionActive},
			{Name: "us", Base: 300_000, Published: 300_000, State: ledger.RegionActive}}},
		loads: []plan.Load{{Known: true, Mean: 20, Peak: 20, Offered: 20, Share: 700_000}, {Known: true, Mean: 70, Peak: 70, Offered: 70, Share: 300_000}},
	}
	var err error
	r.Runner, err = New(Options{Ledger: r, Collector: r, Adviser: r, Base: parameter.Default(), Holder: "x",
		Logger: slog.New(slog.DiscardHandler), Tracer: tracenoop.Tracer{}, Meter: metricnoop.Meter{}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) Refresh(_ context.Context, m *ledger.Mirror) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	*m = r.mirror
	m.Splits, m.Parameters = maps.Clone(r.mirror.Splits), maps.Clone(r.mirror.Parameters)
	return nil
}

func (r *rig) Commit(_ context.Context, d ledger.Decision) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits = append(r.commits, d)
	r.mirror.Apply(&d, time.Now())
	return nil
}

func (r *rig) Publish(context.Context, int64, string, []ledger.Region, map[string]limit.Share) error {
	return nil
}

func (r *rig) Demand(time.Time, []string) []plan.Demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []plan.Demand{{Key: key, Loads: slices.Clone(r.loads)}}
}

func (r *rig) Refused(now time.Time, regions []string) []plan.Demand { return r.Demand(now, regions) }

func (r *rig) Regions(time.Time) []collect.RegionStatus {
	return []collect.RegionStatus{{Name: "eu", Known: true, Instances: 1}, {Name: "us", Known: true, Instances: 1}}
}

func (r *rig) Expect(regions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected = regions
}

func (r *rig) Send(_ context.Context, c advise.Cycle, _ []plan.Region, moves []plan.Move) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advised, r.moves = append(r.advised, c), moves
	return nil
}

func (r *rig) Forget() {}

func (r *rig) set(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mirror.Parameters[name] = ledger.Parameter{Name: name, Value: json.RawMessage(value)}
}

func (r *rig) counts() (commits, advised int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.commits), len(r.advised)
}

// leading runs the story while the rig leads in term 7.
func leading(t *testing.T, story func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Lead(ctx, 7) }()
		story(r)
		cancel()
		<-done
	})
}

func TestCyclesComeOnTimeAndAdviseWhatWasCommitted(t *testing.T) {
	leading(t, func(r *rig) {
		time.Sleep(15 * time.Second) // a new leader does not wait a whole cycle
		if commits, advised := r.counts(); commits != 1 || advised != 1 {
			t.Fatalf("%d commits and %d advices after the start, want one each", commits, advised)
		}
		r.mu.Lock()
		d := r.commits[0]
		if r.advised[0] != (advise.Cycle{Term: 7, Number: 1}) || len(r.moves) != 1 {
			t.Errorf("advised %+v %+v", r.advised, r.moves)
		}
		r.mu.Unlock()
		if d.Term != 7 || d.Cycle != 1 || len(d.Changes) != 1 || d.Changes[0].After[1] <= 300_000 {
			t.Errorf("decision %+v, want us to get more in term 7", d)
		}
		time.Sleep(10 * time.Minute)
		if commits, _ := r.counts(); commits != 6 {
			t.Errorf("%d cycles in ten minutes, want one every two", commits)
		}
		r.Request()
		time.Sleep(time.Second)
		if commits, _ := r.counts(); commits != 7 || r.Last().Cause != causeRequested {
			t.Errorf("no cycle on request: %d, %+v", commits, r.Last())
		}
	})
}

func TestPauseAndShorterCycle(t *testing.T) {
	leading(t, func(r *rig) {
		r.set("paused", "true")
		r.Poke()
		time.Sleep(10 * time.Minute)
		if commits, _ := r.counts(); commits != 0 {
			t.Errorf("%d commits while paused", commits)
		}
		r.set("paused", "false")
		r.set("cycle", `"10s"`)
		r.Poke()
		time.Sleep(time.Minute)
		if commits, _ := r.counts(); commits < 5 {
			t.Errorf("%d cycles in a minute of 10 s cycles", commits)
		}
	})
}

func TestParameterThatMakesNoSenseIsNotUsed(t *testing.T) {
	leading(t, func(r *rig) {
		r.set("cycle", `"0s"`)
		r.set("floor", `0.1`)
		r.Poke()
		time.Sleep(time.Minute)
		if p := r.Parameters().Plan; p.Cycle != 2*time.Minute || p.Floor != 0.1 {
			t.Errorf("parameters %+v, want the bad one ignored and the good one used", p)
		}
	})
}

func TestFailedCycleIsVisibleAndTriedAgain(t *testing.T) {
	leading(t, func(r *rig) {
		r.mu.Lock()
		r.fail = errors.New("the ledger is away")
		r.mu.Unlock()
		time.Sleep(15 * time.Second)
		if o := r.Last(); o.Err == nil {
			t.Errorf("outcome %+v, want the failure", o)
		}
		if _, advised := r.counts(); advised != 0 {
			t.Error("advised what was not committed")
		}
		r.mu.Lock()
		r.fail = nil
		r.mu.Unlock()
		time.Sleep(30 * time.Second) // less than a cycle
		if o := r.Last(); o.Err != nil {
			t.Errorf("outcome %+v after the ledger came back", o)
		}
	})
}

// TestEarlyCycle is case limits 14, for the slow loop: refused here while the limit has room does not wait.
func TestEarlyCycle(t *testing.T) {
	leading(t, func(r *rig) {
		time.Sleep(15 * time.Second)
		r.mu.Lock()
		r.loads[0].Offered, r.loads[1].Refused = 5, 40
		r.mu.Unlock()
		time.Sleep(30 * time.Second)
		if o := r.Last(); o.Cause != causeEarly {
			t.Errorf("last cycle %+v, want an early one", o)
		}
	})
}

func TestFrozenAndPinned(t *testing.T) {
	r := newRig(t)
	v := parameter.Default()
	now := time.Now()
	input := func() plan.Input {
		return Input(&r.mirror, r.Demand(now, nil), []bool{true, true}, v, now)
	}
	if in := input(); len(in.Keys) != 1 || in.Keys[0].Rule == nil {
		t.Fatalf("input %+v", in)
	}
	v.FrozenTenants = []string{"a"}
	if in := input(); len(in.Keys) != 0 {
		t.Error("a frozen tenant is planned")
	}
	v.FrozenTenants, v.FrozenRegions = nil, []string{"us"}
	if in := input(); in.Keys[0].Loads[1].Known {
		t.Error("a frozen region is planned")
	}
	v.FrozenRegions = nil
	pin := limit.Share(400_000)
	idle := limit.Key{Tenant: "b", Route: "r"}
	split := ledger.Split{Key: idle, Regions: []ledger.RegionShare{{Region: "eu", Target: 700_000, Pin: &pin}, {Region: "us", Target: 300_000}}}
	r.mirror.Splits[idle] = split
	in := input()
	if len(in.Keys) != 2 || in.Keys[1].Pins[0] != pin || in.Keys[1].Pins[1] != plan.Unpinned {
		t.Errorf("input %+v, want the pinned key without traffic too", in.Keys)
	}
	split.Regions[0].PinExpires = now.Add(-time.Second)
	if in := input(); len(in.Keys) != 1 {
		t.Errorf("an expired pin is still planned: %+v", in.Keys)
	}
	// While the base split changes, only keys that have moved are planned.
	r.mirror.Regions[0].Published = 500_000
	if in := input(); len(in.Keys) != 0 {
		t.Error("a key that never moved is planned while the base split changes")
	}
	base := limit.Share(700_000)
	r.mirror.Splits[key] = ledger.Split{Key: key, Regions: []ledger.RegionShare{{Region: "eu", Target: 700_000, Base: &base}, {Region: "us", Target: 300_000, Base: &base}}}
	if in := input(); len(in.Keys) != 1 {
		t.Error("a moved key is not planned while the base split changes")
	}
}

// TestRestart is case limits 26: a new leader plans from the ledger, and what regions claim raises no share by itself.
// What is dead or removed is not waited for, and nobody is by who does not lead.
func TestOnlyLivingRegionsAreExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mirror.Regions = append(r.mirror.Regions, ledger.Region{Name: "ap", State: ledger.RegionDead})
		r.loads = append(r.loads, plan.Load{})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		time.AfterFunc(20*time.Second, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !slices.Equal(r.expected, []string{"eu", "us"}) {
				t.Errorf("expected are %v", r.expected)
			}
		})
		r.Lead(ctx, 1)
		if r.expected != nil {
			t.Errorf("after the reign %v are expected", r.expected)
		}
	})
}

func TestRestart(t *testing.T) {
	r := newRig(t)
	r.mirror.Splits[key] = ledger.Split{Key: key, Regions: []ledger.RegionShare{{Region: "eu", Target: 400_000}, {Region: "us", Target: 600_000}}}
	for i := range r.loads { // both offer the whole limit, and neither has reported a share yet
		r.loads[i] = plan.Load{Known: true, Mean: 100, Peak: 100, Offered: 100}
	}
	in := Input(&r.mirror, r.Demand(time.Now(), nil), []bool{true, true}, parameter.Default(), time.Now())
	res := plan.Plan(in)
	if got := res.Targets[0].Observed; got[0] != 400_000 || got[1] != 600_000 {
		t.Errorf("began from %v, want the ledger's 400000 and 600000", got)
	}
	if sum := res.Targets[0].Shares[0] + res.Targets[0].Shares[1]; sum != limit.Whole {
		t.Errorf("targets add up to %d", sum)
	}
	for _, m := range res.Moves {
		if m.Held-m.Amount < m.Target {
			t.Errorf("move %+v gives more than is held above the target", m)
		}
	}
}
