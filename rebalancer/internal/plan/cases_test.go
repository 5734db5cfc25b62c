package plan

import (
	"math"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// world is a key whose loads a test sets cycle by cycle, with regions that do what the plan says.
type world struct {
	t       *testing.T
	in      Input
	windows []Estimate
}

func newWorld(t *testing.T, perSecond, capacity int64, base ...limit.Share) *world {
	t.Helper()
	w := &world{t: t, in: Input{Parameters: DefaultParameters(), Homes: true}, windows: make([]Estimate, len(base))}
	d := Demand{
		Key:  limit.Key{Tenant: "shop-a", Route: "create-order"},
		Rule: &limit.Rule{Capacity: capacity, Refill: perSecond, PeriodSeconds: 1},
	}
	for i, b := range base {
		w.in.Regions = append(w.in.Regions, Region{Name: []string{"eu", "us", "ap", "sa", "af"}[i], Base: b})
		d.Loads = append(d.Loads, Load{Known: true, Share: b})
	}
	w.in.Keys = []Demand{d}
	return w
}

func (w *world) key() *Demand { return &w.in.Keys[0] }

// offer lets the given loads, in tokens per second, last for one cycle of 10 s windows.
func (w *world) offer(loads ...float64) {
	const window = 10 * time.Second
	for at := time.Duration(0); at < w.in.Parameters.Cycle; at += window {
		for i, rate := range loads {
			w.windows[i].Observe(rate, window, w.in.Parameters)
		}
	}
	for i, rate := range loads {
		l := &w.key().Loads[i]
		l.Mean, l.Peak, l.Usual, l.Offered = w.windows[i].Mean, w.windows[i].Peak, w.windows[i].Usual, rate
		l.Refused = max(0, rate-float64(l.Share)/1e6*rateOf(w.key().Rule))
	}
}

// cycle plans once and lets every region do as advised.
func (w *world) cycle() Target {
	w.t.Helper()
	res := Plan(w.in)
	target := res.Targets[0]
	if sum := total(target.Shares); sum != limit.Whole {
		w.t.Fatalf("targets %v add up to %d", target.Shares, sum)
	}
	for i := range w.in.Regions {
		w.key().Loads[i].Share = target.Shares[i]
	}
	w.key().Last = target.Shares
	return target
}

// rates of the split in tokens per second.
func (w *world) rates(target Target) []float64 {
	out := make([]float64, len(target.Shares))
	for i, s := range target.Shares {
		out[i] = w.key().Rule.SliceOf(s).Rate
	}
	return out
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

// Case L25: A asks for the impossible, B for 50, C for 10, of 120.
func TestMaxMinIsExact(t *testing.T) {
	w := newWorld(t, 120, 1200, 333_334, 333_333, 333_333)
	w.in.Parameters.Headroom, w.in.Parameters.Step = 0, limit.Whole
	w.offer(1e9, 50, 10)
	got := w.rates(w.cycle())
	for i, want := range []float64{60, 50, 10} {
		if !near(got[i], want, 0.001) {
			t.Errorf("%s gets %.3f/s, want %v (all: %v)", w.in.Regions[i].Name, got[i], want, got)
		}
	}
	w.in.Parameters.Headroom = 2
	if got := w.rates(w.cycle()); got[1] < 50 || got[2] < 10 {
		t.Errorf("with headroom the modest regions get less than they use: %v", got)
	}
}

// Case L28: both regions ask for everything, from 90/10; the end is 50/50 without going back.
func TestEqualDemandConvergesWithoutReversal(t *testing.T) {
	w := newWorld(t, 100, 200, 500_000, 500_000)
	w.key().Last = []limit.Share{900_000, 100_000}
	w.key().Loads[0].Share, w.key().Loads[1].Share = 900_000, 100_000
	w.in.Parameters.Step = 150_000
	reversals, direction := 0, 0
	for range 10 {
		w.offer(100, 100)
		before := w.key().Loads[0].Share
		target := w.cycle()
		if d := int(target.Shares[0] - before); d != 0 {
			if direction != 0 && (d > 0) != (direction > 0) {
				reversals++
			}
			direction = d
		}
	}
	if got := w.key().Last; got[0] != 500_000 || got[1] != 500_000 {
		t.Errorf("ends at %v, want 50/50", got)
	}
	if reversals > 0 {
		t.Errorf("%d reversals", reversals)
	}
}

// Case P89: 70/30 load flips to 10/90.
func TestTrafficMovesWithinTwoCycles(t *testing.T) {
	w := newWorld(t, 100, 200, 700_000, 300_000)
	for range 5 {
		w.offer(65, 28)
		w.cycle()
	}
	w.offer(9, 80)
	w.cycle()
	w.offer(9, 80)
	target := w.cycle()
	if target.Shares[1] < 800_000 {
		t.Errorf("after two cycles us has %v", target.Shares)
	}
	if floor := limit.Share(35_000); target.Shares[0] < floor {
		t.Errorf("eu has %v, below its floor %d", target.Shares, floor)
	}
}

// Case P91: what is refused counts as demand.
func TestRefusedDemandCounts(t *testing.T) {
	w := newWorld(t, 100, 200, 500_000, 500_000)
	w.key().Last = []limit.Share{950_000, 50_000}
	w.key().Loads[0].Share, w.key().Loads[1].Share = 950_000, 50_000
	w.offer(10, 60)
	if target := w.cycle(); target.Shares[1] <= 50_000 {
		t.Errorf("us does not grow: %v", target.Shares)
	}
	w.offer(10, 60)
	if target := w.cycle(); target.Shares[1] < 600_000 {
		t.Errorf("us has %v, less than it is asked for", target.Shares)
	}
}

// Case P92: a client of us sends ten times the limit; eu uses 60 of its 70.
func TestRetryStormDoesNotWin(t *testing.T) {
	w := newWorld(t, 100, 200, 700_000, 300_000)
	for range 20 {
		w.offer(60, 1000)
		if target := w.cycle(); target.Shares[0] < 680_000 {
			t.Fatalf("eu is pushed to %v; reason: %s", target.Shares, target.Reason)
		}
	}
}

// Case P97: the load swings every cycle.
func TestFlappingIsHeld(t *testing.T) {
	w := newWorld(t, 100, 200, 500_000, 500_000)
	least, most := limit.Whole, limit.Share(0)
	for i := range 60 {
		if i%2 == 0 {
			w.offer(80, 15)
		} else {
			w.offer(15, 80)
		}
		before := w.key().Loads[0].Share
		target := w.cycle()
		if i >= 4 { // where it starts from is not of the swing
			least, most = min(least, target.Shares[0]), max(most, target.Shares[0])
		}
		if d := target.Shares[0] - before; d > w.in.Parameters.Step || -d > w.in.Parameters.Step {
			t.Fatalf("a step of %d", d)
		}
	}
	// The load swings by 68 % of itself. One target per key and cycle is all that is ever written.
	if swing := most - least; swing > w.in.Parameters.Step {
		t.Errorf("the share swings by %d, one step at most", swing)
	}
}

// Noise around a steady load must not move anything.
func TestNoiseStaysInTheDeadband(t *testing.T) {
	w := newWorld(t, 100, 200, 500_000, 500_000)
	for range 3 {
		w.offer(45, 45)
		w.cycle()
	}
	for i := range 30 {
		w.offer(45+float64(i%3), 45-float64(i%2))
		if target := w.cycle(); target.Changed {
			t.Fatalf("cycle %d moves %v -> %v: %s", i, target.Observed, target.Shares, target.Reason)
		}
	}
}

// Cases P94, L26: a rebalancer that has heard nothing, or restarts, changes nothing; claims of shares mint none.
func TestSilenceChangesNothing(t *testing.T) {
	w := newWorld(t, 100, 200, 700_000, 300_000)
	w.key().Last = []limit.Share{200_000, 800_000}
	for i := range w.key().Loads {
		w.key().Loads[i] = Load{}
	}
	target := w.cycle()
	if target.Changed || target.Shares[0] != 200_000 || target.Shares[1] != 800_000 {
		t.Errorf("after a restart: %+v", target)
	}
	w.key().Loads = []Load{{Known: true, Share: limit.Whole, Mean: 500, Peak: 500}, {Known: true, Share: limit.Whole, Mean: 500, Peak: 500}}
	target = w.cycle()
	if target.Observed[0] != 200_000 || target.Observed[1] != 800_000 {
		t.Errorf("two claims of everything are read as %v, want the ledger's 20/80", target.Observed)
	}
}

// A silent region keeps what it holds, however hard the others press.
func TestSilentRegionKeepsItsShare(t *testing.T) {
	w := newWorld(t, 100, 200, 400_000, 300_000, 300_000)
	w.offer(90, 5, 0)
	w.key().Loads[2] = Load{Share: 300_000}
	target := w.cycle()
	if target.Shares[2] != 300_000 {
		t.Errorf("the silent region goes from 300000 to %d", target.Shares[2])
	}
	if target.Shares[0] < 600_000 {
		t.Errorf("the pressed region gets %v of the rest", target.Shares)
	}
}

// Case P98: a region is added with base 0; another is drained.
func TestRegionAddedAndDrained(t *testing.T) {
	w := newWorld(t, 100, 200, 700_000, 300_000, 0)
	w.in.Regions[2].Floor = 50_000
	w.offer(40, 20, 0)
	if target := w.cycle(); target.Shares[2] < 50_000 {
		t.Errorf("the new region is not lifted to its floor: %v", target.Shares)
	}
	w.in.Regions[1].Drained = true
	target := w.cycle()
	if target.Shares[1] != 0 {
		t.Errorf("the drained region keeps %v", target.Shares)
	}
	// Drained but silent: its share comes back only after its word, or an operator's.
	w = newWorld(t, 100, 200, 700_000, 300_000)
	w.in.Regions[1].Drained = true
	w.offer(40, 20)
	w.key().Loads[1].Known = false
	if target := w.cycle(); target.Shares[1] != 300_000 {
		t.Errorf("a silent region is drained without its word: %v", target.Shares)
	}
}

// Case L14: the waking region always has a floor, and an early cycle is due while it is starved.
func TestWakingRegionIsEarly(t *testing.T) {
	w := newWorld(t, 100, 200, 500_000, 500_000)
	for range 4 {
		w.offer(90, 0)
		w.cycle()
	}
	if share := w.key().Loads[1].Share; share < 25_000 {
		t.Fatalf("the idle region has %d, below its floor", share)
	}
	w.offer(45, 45)
	if !Early(w.key(), w.in.Parameters) {
		t.Error("no early cycle while us is refused and eu idles")
	}
	w.offer(100, 100)
	if Early(w.key(), w.in.Parameters) {
		t.Error("an early cycle although the limit is used up")
	}
}

// Case L13: the total is cut; shares are parts of the whole, so they need no change and no sentinel.
func TestCuttingTheLimitKeepsShares(t *testing.T) {
	w := newWorld(t, 100, 100, 500_000, 500_000)
	w.offer(40, 40)
	w.cycle()
	w.key().Rule = &limit.Rule{Capacity: 30, Refill: 30, PeriodSeconds: 1}
	target := w.cycle()
	sum := 0.0
	for i, s := range target.Shares {
		if s <= 0 {
			t.Errorf("region %d: share %d", i, s)
		}
		sum += w.key().Rule.SliceOf(s).Capacity
	}
	if sum > 30+1e-9 {
		t.Errorf("slices of 30 add up to %v", sum)
	}
}

// Case L20: small limits are not cut into useless parts.
func TestTinyLimitsHaveAHome(t *testing.T) {
	fifth := limit.Whole / 5
	w := newWorld(t, 2, 2, fifth, fifth, fifth, fifth, fifth)
	for i := range w.key().Loads {
		w.key().Loads[i].Share = 0 // nothing reported yet
	}
	w.offer(0.2, 0.1, 0.7, 0.1, 0.1)
	if target := w.cycle(); target.Observed[4] != limit.Whole || target.Shares[2] != limit.Whole {
		t.Fatalf("2/s over five regions: %v -> %v, want everything first in af, the first by name, then where the demand is", target.Observed, target.Shares)
	}
	for range 5 {
		w.offer(0.2, 0.9, 0.6, 0.1, 0.1)
		if target := w.cycle(); target.Shares[2] != limit.Whole {
			t.Errorf("the home moves for a little more demand: %v", target.Shares)
		}
	}
	for range 10 {
		w.offer(0.2, 1.9, 0.1, 0.1, 0.1)
		w.cycle()
	}
	if got := w.key().Last; got[1] != limit.Whole {
		t.Errorf("the home does not follow the demand: %v", got)
	}
	// Cost 10 of a capacity of 100: every region keeps room for one request, and the limit is divided.
	w = newWorld(t, 100, 100, 500_000, 500_000)
	w.key().Rule.MaxCost = 10
	for range 6 {
		w.offer(90, 0)
		w.cycle()
	}
	if got := w.key().Last[1]; w.key().Rule.SliceOf(got).Capacity < 10 {
		t.Errorf("the idle region cannot admit one request of cost 10: share %d", got)
	}
}

func TestPinsAreObeyedAtOnce(t *testing.T) {
	w := newWorld(t, 100, 200, 500_000, 300_000, 200_000)
	w.in.Parameters.Step = 10_000
	w.key().Pins = []limit.Share{900_000, Unpinned, Unpinned}
	w.offer(1, 90, 90)
	target := w.cycle()
	if target.Shares[0] != 900_000 {
		t.Errorf("pinned to 900000, planned %v", target.Shares)
	}
	if !strings.Contains(target.Reason.String(), "pin") {
		t.Errorf("reason %q does not speak of the pin", target.Reason)
	}
}

func TestReasonsSpeak(t *testing.T) {
	w := newWorld(t, 100, 200, 700_000, 300_000)
	w.offer(10, 60)
	target := w.cycle()
	for _, word := range []string{"follow", "us", "60/s", "->"} {
		if !strings.Contains(target.Reason.String(), word) {
			t.Errorf("reason %q lacks %q", target.Reason, word)
		}
	}
}

// Case L23: steady, silent, then a hundred times as much.
func TestEstimateFollows(t *testing.T) {
	p := DefaultParameters()
	var e Estimate
	for range 30 {
		e.Observe(10, 10*time.Second, p)
	}
	if !near(e.Mean, 10, 0.5) {
		t.Errorf("steady 10/s is estimated as %v", e.Mean)
	}
	for range 400 {
		e.Observe(0, 10*time.Second, p)
	}
	if e.Mean != 0 || e.Peak != 0 {
		t.Errorf("long silence is estimated as %v, peak %v", e.Mean, e.Peak)
	}
	e.Observe(1000, 10*time.Second, p)
	if e.Peak < 400 {
		t.Errorf("a rise to 1000/s shows as %v after one window", e.Peak)
	}
	before := e
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		e.Observe(bad, 10*time.Second, p)
	}
	if e != before {
		t.Errorf("nonsense changes the estimate: %+v", e)
	}
}

func TestParametersValidate(t *testing.T) {
	if err := DefaultParameters().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	p := Parameters{Cycle: time.Second, Floor: math.NaN(), Step: 0, Headroom: -1, SpareByNeed: 2, Deadband: -1}
	err := p.Validate()
	for _, field := range []string{"cycle", "floor", "step", "headroom", "spare_by_need", "deadband", "mean_half_life"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not refused: %v", field, err)
		}
	}
}
