package collect

import (
	"cmp"
	"slices"
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Demand lists every key in use with one load per named region, as Collector.Demand does.
func (t *Table) Demand(now time.Duration, regions []string) []plan.Demand {
	return t.demand(now, regions, nil)
}

// Refused is Demand of only those keys that some region refused in its latest window.
func (t *Table) Refused(now time.Duration, regions []string) []plan.Demand {
	return t.demand(now, regions, refusedLately)
}

// demand lists the keys that want tell true for, in name order, with one load per named region. A region that was never
// heard is unknown. Rule, Last and Pins are left to the caller.
func (t *Table) demand(now time.Duration, regions []string, want func(*key) bool) []plan.Demand {
	p := t.options.Parameters()
	index, known := t.find(now, regions)
	keys := make([]*key, 0, len(t.keys))
	for _, k := range t.order.all() {
		t.refresh(now, k, index, p)
		if want == nil || want(k) {
			keys = append(keys, k)
		}
	}
	loads := make([]plan.Load, len(keys)*len(regions))
	out := make([]plan.Demand, len(keys))
	for i, k := range keys {
		own := loads[:len(regions):len(regions)]
		loads = loads[len(regions):]
		t.read(k, index, known, own)
		out[i] = plan.Demand{Key: k.name, Loads: own}
	}
	return out
}

// find the named regions: where they stand, −1 for one that was never heard, and whether their numbers can be relied on.
func (t *Table) find(now time.Duration, regions []string) (index []int, known []bool) {
	index, known = make([]int, len(regions)), make([]bool, len(regions))
	for i, name := range regions {
		index[i] = -1
		if r, ok := t.regions[name]; ok {
			index[i], known[i] = r, t.known(now, r)
		}
	}
	return index, known
}

// refresh closes the windows of a key that have passed.
func (t *Table) refresh(now time.Duration, k *key, index []int, p plan.Parameters) {
	for _, r := range index {
		if r >= 0 {
			t.load(now, k, r, p)
		}
	}
}

// read the loads of a key that was refreshed.
func (t *Table) read(k *key, index []int, known []bool, into []plan.Load) {
	for j, r := range index {
		if r >= 0 {
			into[j] = k.loads[r].read(known[j], t.options.Window)
		}
	}
}

// read is the load as the plan wants it.
func (l *load) read(known bool, window time.Duration) plan.Load {
	return plan.Load{
		Known: known, Share: l.share,
		Mean: l.estimate.Mean, Peak: l.estimate.Peak, Usual: l.estimate.Usual,
		Offered: l.latest.offered / window.Seconds(), Refused: l.latest.refused / window.Seconds(),
	}
}

// ForgetShares drops what a region last said it holds: its share was minted anew while it was away, so its word is void.
func (t *Table) ForgetShares(region string) {
	r, ok := t.regions[region]
	if !ok {
		return
	}
	for _, k := range t.keys {
		if r < len(k.loads) {
			k.loads[r].share = 0
		}
	}
}

// refusedLately tells whether any region refused requests of the key in its latest window.
func refusedLately(k *key) bool {
	for i := range k.loads {
		if k.loads[i].latest.refused > 0 {
			return true
		}
	}
	return false
}

// RegionStatus is what is known of a region as a whole.
type RegionStatus struct {
	Name string
	// Known is false while the region is silent or has not been heard long enough.
	Known bool
	// Silence is the time since the region was last heard, -1 if never.
	Silence time.Duration
	// Instances that are alive and not draining.
	Instances int
	// Gateways are all that were heard lately, in the order of their names.
	Gateways []Gateway
	// Rules is the revision that every one of them has reached, zero where there are none.
	Rules limit.Revision
}

func (t *Table) status(now time.Duration) []RegionStatus {
	out := make([]RegionStatus, len(t.states))
	for i := range t.states {
		s := &t.states[i]
		out[i] = RegionStatus{Name: s.name, Known: t.known(now, i), Silence: -1, Instances: s.live}
		if s.heard >= 0 {
			out[i].Silence = now - s.heard
		}
		out[i].Rules = t.reached(now, i)
	}
	t.gateways(now, out)
	slices.SortFunc(out, func(a, b RegionStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Gateway is one instance of a region as it last said itself.
type Gateway struct {
	Instance string `json:"instance"`
	// Rules is the revision that it serves by.
	Rules limit.Revision `json:"rules"`
	// Stale: by a snapshot saved earlier. Degraded: without its Redis. Draining: it is stopping.
	Stale    bool `json:"stale,omitempty"`
	Degraded bool `json:"degraded,omitempty"`
	Draining bool `json:"draining,omitempty"`
	// Silence is the time since it was last heard, in seconds.
	Silence float64 `json:"silence_seconds"`
}

// gateways fills in the instances of the regions, which are in the order of t.states.
func (t *Table) gateways(now time.Duration, regions []RegionStatus) {
	for name, in := range t.instances {
		regions[in.region].Gateways = append(regions[in.region].Gateways, Gateway{Instance: name.instance, Rules: in.rules,
			Stale: in.stale, Degraded: in.degraded, Draining: in.draining, Silence: (now - in.heard).Seconds()})
	}
	for i := range regions {
		slices.SortFunc(regions[i].Gateways, func(a, b Gateway) int { return cmp.Compare(a.Instance, b.Instance) })
	}
}

// reached is the oldest revision that an instance of the region serves by.
func (t *Table) reached(now time.Duration, region int) (oldest limit.Revision) {
	first := true
	for _, in := range t.instances {
		if in.region != region || in.draining || now-in.heard > t.options.SilentAfter {
			continue
		}
		if first || oldest.Newer(in.rules) {
			oldest, first = in.rules, false
		}
	}
	return oldest
}
