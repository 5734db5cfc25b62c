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
		first := firstMove(m, demand.Loads) && !moved(split)
		if t.Changed || !known && first {
			reason := t.Reason.String()
			if !t.Changed {
				reason = "observed: the regions have moved share between themselves"
			}
			d.Changes = append(d.Changes, ledger.Change{Key: t.Key, Before: t.Observed, After: t.Shares, Reason: reason})
			known = true
		}
		if shares, news := observed(m, split, demand.Loads); known && (news || first) {
			d.Observed = append(d.Observed, ledger.Observation{Key: t.Key, Shares: shares, Moved: first})
		}
	}
	return d
}

// firstMove tells whether a region reports a share that is neither the published base share nor the configured one: it
// cannot come from a gateway that is a revision behind, so the key has moved.
func firstMove(m *ledger.Mirror, loads []plan.Load) bool {
	for i, r := range m.Regions {
		if s := loads[i].Share; loads[i].Known && s > 0 && s != r.Published && s != r.Base {
			return true
		}
	}
	return false
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
