package ledger

import (
	"slices"
	"time"
)

// Apply brings m to where a committed decision leads, as a later Refresh would.
func (m *Mirror) Apply(d *Decision, now time.Time) {
	for i := range d.Changes {
		m.change(d, &d.Changes[i], now)
	}
	for i := range d.Observed {
		m.observe(d, &d.Observed[i], now)
	}
}

func (m *Mirror) change(d *Decision, c *Change, now time.Time) {
	old := m.Splits[c.Key]
	s := Split{Key: c.Key, Reason: c.Reason, By: "rebalancer " + d.Holder, At: now, Term: d.Term, Cycle: d.Cycle}
	for j, region := range d.Regions {
		r := RegionShare{Region: region}
		if i := slices.IndexFunc(old.Regions, func(o RegionShare) bool { return o.Region == region }); i >= 0 {
			r = old.Regions[i]
		}
		r.Target = c.After[j]
		s.Regions = append(s.Regions, r)
	}
	m.Splits[c.Key] = s
}

func (m *Mirror) observe(d *Decision, o *Observation, now time.Time) {
	s, ok := m.Splits[o.Key]
	if !ok {
		return
	}
	s.Regions = slices.Clone(s.Regions)
	for i := range s.Regions {
		r := &s.Regions[i]
		j := slices.Index(d.Regions, r.Region)
		if j < 0 || o.Shares[j] == Unreported {
			continue
		}
		if share := o.Shares[j]; r.Observed == nil || *r.Observed != share {
			r.Observed, r.ObservedAt = &share, now
		}
	}
	if o.Base != nil && !slices.ContainsFunc(s.Regions, func(r RegionShare) bool { return r.Base != nil }) {
		for i := range s.Regions {
			r := &s.Regions[i]
			if j := slices.Index(d.Regions, r.Region); j >= 0 {
				base := o.Base[j]
				r.Base = &base
			}
		}
	}
	m.Splits[o.Key] = s
}
