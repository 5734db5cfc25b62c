package cycle

import (
	"context"
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// publication is the next step of a change of the base split (PROTOCOL R15): first the smaller of what is published and
// what is configured, for every region at once; then, when every instance of every living region serves by that, what is
// configured. Nil where nothing is to be done now.
//
// In between the shares add up to less than the whole, never to more, whatever order the gateways hear of it in.
func publication(regions []ledger.Region, heard []collect.RegionStatus) map[string]limit.Share {
	smaller, wanted := make(map[string]limit.Share), make(map[string]limit.Share)
	var newest limit.Revision
	for _, r := range regions {
		newest = newest.Max(r.Revision)
		if r.Published > r.Base {
			smaller[r.Name] = r.Base
		}
		if r.Published < r.Base {
			wanted[r.Name] = r.Base
		}
	}
	switch {
	case len(smaller) > 0:
		return smaller
	case len(wanted) == 0 || !acknowledged(regions, heard, newest):
		return nil
	}
	return wanted
}

// acknowledged tells whether all instances of all regions serve by revision at. A region without an instance has not:
// one that is cut off may go on by the old split.
func acknowledged(regions []ledger.Region, heard []collect.RegionStatus, at limit.Revision) bool {
	status := make(map[string]collect.RegionStatus, len(heard))
	for _, h := range heard {
		status[h.Name] = h
	}
	for _, r := range regions {
		h := status[r.Name]
		if r.State != ledger.RegionDead && (!h.Known || h.Instances == 0 || at.Newer(h.Rules)) {
			return false
		}
	}
	return true
}

// publish takes the next step of a change of the base split, if one is due.
func (l *reign) publish(ctx context.Context, now time.Time) error {
	shares := publication(l.mirror.Regions, l.options.Collector.Regions(now))
	if shares == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := l.options.Ledger.Publish(ctx, l.term, l.options.Holder, l.mirror.Regions, shares); err != nil {
		return err
	}
	l.options.Logger.InfoContext(ctx, "base split published", "term", l.term, "shares", shares)
	return l.refresh(ctx, now)
}
