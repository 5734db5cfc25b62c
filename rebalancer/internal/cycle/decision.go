package cycle

import (
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// Decide turns a plan into what the ledger has to write down: the targets that changed, and what the regions report. A
// key whose regions have moved share by themselves gets a split too, so that everybody knows that it has moved.
func Decide(m *ledger.Mirror, in *plan.Input, res *plan.Result) ledger.Decision {
	d := ledger.Decision{Regions: names(m.Regions)}
	loads := make(map[limit.Key]*plan.Demand, len(in.Keys))
	for i := range in.Keys {
		loads[in.Keys[i].Key] = &in.Keys[i]
	}
	for i := range res.Targets {
		t := &res.Targets[i]
		split, known := m.Splits[t.Key]
		demand := loads[t.Key]
		var base []limit.Share
		if !moved(split) {
			base = firstMove(m, demand)
		}
		if t.Changed || !known && base != nil {
			reason := t.Reason.String()
			if !t.Changed {
				reason = "observed: the regions have moved share between themselves"
			}
			d.Changes = append(d.Changes, ledger.Change{Key: t.Key, Before: t.Observed, After: t.Shares, Reason: reason})
			known = true
		}
		if shares, news := observed(m, split, demand.Loads); known && (news || base != nil) {
			d.Observed = append(d.Observed, ledger.Observation{Key: t.Key, Shares: shares, Base: base})
		}
	}
	return d
}

// firstMove tells whether a region reports a share that is its base share of the key neither by the published split nor by the
// configured one: it cannot come from a gateway that is a revision behind, so the key has moved. Then it gives the published
// base shares of the key, which are all or nothing where its limit is tiny; else nil.
func firstMove(m *ledger.Mirror, d *plan.Demand) []limit.Share {
	published, configured := limit.Split{}, limit.Split{}
	for _, r := range m.Regions {
		published[r.Name], configured[r.Name] = r.Published, r.Base
	}
	moved := false
	base := make([]limit.Share, len(m.Regions))
	for i, r := range m.Regions {
		base[i] = published.BaseOf(d.Rule, r.Name)
		s := d.Loads[i].Share
		moved = moved || d.Loads[i].Known && s > 0 && s != base[i] && s != configured.BaseOf(d.Rule, r.Name)
	}
	if !moved {
		return nil
	}
	return base
}

// observed is what the regions report, and whether any of it is news to the ledger.
func observed(m *ledger.Mirror, s ledger.Split, loads []plan.Load) (shares []limit.Share, news bool) {
	shares = make([]limit.Share, len(m.Regions))
	for i, r := range m.Regions {
		shares[i] = ledger.Unreported
		if !loads[i].Known || loads[i].Share <= 0 {
			continue
		}
		shares[i] = loads[i].Share
		rs := region(s, r.Name)
		news = news || rs == nil || rs.Observed == nil || *rs.Observed != loads[i].Share
	}
	return shares, news
}
