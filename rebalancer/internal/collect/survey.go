package collect

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Survey is what is offered and refused of every key in use, and no more: what it takes to find the keys that are worth looking
// at. With 300,000 keys it costs a fifth to a third of Demand.
type Survey struct {
	// Keys in the order of their names.
	Keys []limit.Key
	// Rates of key i in region j, in the order of regions, at i·(number of regions) + j.
	Rates []Rate
}

// Rate is in tokens per second over the latest window.
type Rate struct{ Offered, Refused float32 }

// Survey all keys in the named regions.
func (t *Table) Survey(now time.Duration, regions []string) Survey {
	p := t.options.Parameters()
	index, _ := t.find(now, regions)
	keys := t.order.all()
	s := Survey{Keys: make([]limit.Key, len(keys)), Rates: make([]Rate, len(keys)*len(regions))}
	perSecond := 1 / t.options.Window.Seconds()
	for i, k := range keys {
		t.refresh(now, k, index, p)
		s.Keys[i] = k.name
		own := s.Rates[i*len(regions) : (i+1)*len(regions)]
		for j, r := range index {
			if r >= 0 {
				latest := &k.loads[r].latest
				own[j] = Rate{float32(latest.offered * perSecond), float32(latest.refused * perSecond)}
			}
		}
	}
	return s
}

// Loads of the named keys, as Demand has them; unknown ones have offered nothing.
func (t *Table) Loads(now time.Duration, names []limit.Key, regions []string) []plan.Demand {
	p := t.options.Parameters()
	index, known := t.find(now, regions)
	out := make([]plan.Demand, len(names))
	for i, name := range names {
		out[i] = plan.Demand{Key: name, Loads: make([]plan.Load, len(regions))}
		if k := t.keys[name]; k != nil {
			t.refresh(now, k, index, p)
			t.read(k, index, known, out[i].Loads)
		}
	}
	return out
}

// Survey all keys in the named regions.
func (c *Collector) Survey(now time.Time, regions []string) Survey {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Survey(now.Sub(c.start), regions)
}

// Loads of the named keys, in their order.
func (c *Collector) Loads(now time.Time, names []limit.Key, regions []string) []plan.Demand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Loads(now.Sub(c.start), names, regions)
}
