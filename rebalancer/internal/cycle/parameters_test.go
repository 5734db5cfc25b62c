package cycle

import (
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// decided is us's target after the first cycle that comes once the parameter is set, −1 where none was committed. The
// runner has been leading before.
func decided(t *testing.T, name, value string) limit.Share {
	t.Helper()
	target := limit.Share(-1)
	leading(t, func(r *rig) {
		r.mu.Lock()
		r.loads = []plan.Load{{Known: true, Share: 700_000}, {Known: true, Share: 300_000}} // nothing to decide yet
		r.mu.Unlock()
		time.Sleep(15 * time.Second)
		r.mu.Lock()
		r.loads[0] = plan.Load{Known: true, Mean: 15, Peak: 18, Offered: 15, Share: 700_000}
		r.loads[1] = plan.Load{Known: true, Mean: 30, Peak: 38, Offered: 30, Share: 300_000}
		if value != "" {
			r.mirror.Parameters[name] = ledger.Parameter{Name: name, Value: []byte(value)}
		}
		seen := len(r.commits)
		r.mu.Unlock()
		r.Poke()
		r.Request()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, d := range r.commits[seen:] {
			for _, c := range d.Changes {
				target = c.After[1]
			}
		}
	})
	return target
}

// Every parameter acts without a restart: those of a plan change the next decision; where the others are shown stands
// beside their names.
func TestEveryParameterActs(t *testing.T) {
	usual := decided(t, "", "")
	if usual <= 300_000 {
		t.Fatalf("usually us gets %d", usual)
	}
	elsewhere := map[string]string{
		"cycle": "TestPauseAndShorterCycle", "paused": "TestPauseAndShorterCycle", "early_after": "TestEarlyAfterActs",
		"frozen_regions": "TestFrozenAndPinned", "frozen_tenants": "TestFrozenAndPinned",
		"mean_half_life": "collect TestHalfLivesAct", "peak_half_life": "collect TestHalfLivesAct",
		"history_days": "upkeep TestKeepsWhatHistoryDaysSays",
		"fast_loop":    "gateway rules TestParametersAndMovedKeys", "shadow": "gateway rules TestParametersAndMovedKeys", "control_domain": "gateway rules TestParametersAndMovedKeys",
	}
	acts := map[string]struct {
		value string
		right func(us limit.Share) bool
	}{
		"floor":         {"0.9", func(us limit.Share) bool { return us <= 1_000_000-630_000 }},
		"deadband":      {"500000", func(us limit.Share) bool { return us == -1 }},
		"step":          {"10000", func(us limit.Share) bool { return us == 310_000 }},
		"headroom":      {"0", func(us limit.Share) bool { return us > 300_000 && us != usual }},
		"spare_by_need": {"0", func(us limit.Share) bool { return us > 300_000 && us < usual }},
		"peak_weight":   {"0", func(us limit.Share) bool { return us > 300_000 && us != usual }},
	}
	for _, d := range parameter.All() {
		c, ok := acts[d.Name]
		if !ok {
			if elsewhere[d.Name] == "" {
				t.Errorf("nothing shows that %s acts", d.Name)
			}
			continue
		}
		if us := decided(t, d.Name, c.value); !c.right(us) {
			t.Errorf("%s = %s: us gets %d, usually %d", d.Name, c.value, us, usual)
		}
	}
}

func TestEarlyAfterActs(t *testing.T) {
	for value, soon := range map[string]bool{`"1m"`: false, `"2s"`: true} {
		leading(t, func(r *rig) {
			r.set("early_after", value)
			r.Poke()
			time.Sleep(15 * time.Second)
			r.mu.Lock()
			before := len(r.commits)
			r.loads[0].Offered, r.loads[1].Refused = 5, 40
			r.mu.Unlock()
			time.Sleep(10 * time.Second)
			if commits, _ := r.counts(); (commits-before > 0) != soon {
				t.Errorf("early_after %s: %d cycles within ten seconds of refusals", value, commits-before)
			}
		})
	}
}
