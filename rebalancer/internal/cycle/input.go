package cycle

import (
	"slices"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// names of the regions, in the order of the mirror.
func names(regions []ledger.Region) []string {
	out := make([]string, len(regions))
	for i, r := range regions {
		out[i] = r.Name
	}
	return out
}

// Input completes demand with what the ledger holds: rules, last targets and pins. Keys that only the ledger knows are
// added where they have a pin in force or a share in a draining region: those move without traffic.
func Input(m *ledger.Mirror, demand []plan.Demand, known []bool, v parameter.Values, now time.Time) plan.Input {
	in := plan.Input{Now: now, Parameters: v.Plan, Homes: true, Regions: make([]plan.Region, len(m.Regions))}
	published := limit.Share(0)
	draining := false
	for i, r := range m.Regions {
		in.Regions[i] = plan.Region{Name: r.Name, Base: r.Published, Floor: min(r.Floor, r.Published), Drained: r.State == ledger.RegionDraining}
		published += r.Published
		draining = draining || in.Regions[i].Drained
	}
	keep := func(d *plan.Demand) bool {
		if slices.Contains(v.FrozenTenants, d.Key.Tenant) {
			return false
		}
		// While the base split changes no key makes its first move (PROTOCOL R15).
		return published == limit.Whole || moved(m.Splits[d.Key])
	}
	seen := make(map[limit.Key]struct{}, len(demand))
	for i := range demand {
		seen[demand[i].Key] = struct{}{}
		if complete(&demand[i], m, v, now); keep(&demand[i]) {
			in.Keys = append(in.Keys, demand[i])
		}
	}
	for key, s := range m.Splits {
		if _, ok := seen[key]; ok || !(draining || pinned(s, now)) {
			continue
		}
		d := plan.Demand{Key: key, Loads: make([]plan.Load, len(m.Regions))}
		for i, r := range m.Regions {
			d.Loads[i].Known = known[i]
			if rs := region(s, r.Name); rs != nil && rs.Observed != nil {
				d.Loads[i].Share = *rs.Observed
			}
		}
		if complete(&d, m, v, now); keep(&d) {
			in.Keys = append(in.Keys, d)
		}
	}
	return in
}

// complete adds to d the rule, the last targets and the pins, and makes frozen and dead regions look silent, so that
// they keep what they have.
func complete(d *plan.Demand, m *ledger.Mirror, v parameter.Values, now time.Time) {
	d.Rule = m.Rules.Lookup(d.Key, now).Rule
	for i, r := range m.Regions {
		if r.State == ledger.RegionDead || slices.Contains(v.FrozenRegions, r.Name) {
			d.Loads[i].Known = false
		}
	}
	s, ok := m.Splits[d.Key]
	if !ok {
		return
	}
	d.Last = make([]limit.Share, len(m.Regions))
	for i, r := range m.Regions {
		rs := region(s, r.Name)
		if rs == nil {
			continue // added since the last decision: holds nothing of this key yet
		}
		d.Last[i] = rs.Target
		if rs.Pinned(now) {
			if d.Pins == nil {
				d.Pins = slices.Repeat([]limit.Share{plan.Unpinned}, len(m.Regions))
			}
			d.Pins[i] = *rs.Pin
		}
	}
}

func region(s ledger.Split, name string) *ledger.RegionShare {
	for i := range s.Regions {
		if s.Regions[i].Region == name {
			return &s.Regions[i]
		}
	}
	return nil
}

func moved(s ledger.Split) bool {
	return slices.ContainsFunc(s.Regions, func(r ledger.RegionShare) bool { return r.Base != nil })
}

func pinned(s ledger.Split, now time.Time) bool {
	return slices.ContainsFunc(s.Regions, func(r ledger.RegionShare) bool { return r.Pinned(now) })
}
