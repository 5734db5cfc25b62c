package app

import (
	"context"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/rights/lease"
)

// buildLease holds the region's lease for this instance, where the regions that the rules declare make leases run. Decisions
// keep to the floor without it. An instance that has no NATS to renew it by keeps to the floor for good then.
func (g *gateway) buildLease(context.Context) error {
	store, ok := g.store.(*bucket.Redis)
	if !ok {
		return nil
	}
	g.guard = lease.NewGuard(g.config.Region, g.started.UnixMilli(), lease.DefaultTerms(), lease.Clock)
	g.holder.Watch(func(s *snapshot.Snapshot) {
		if len(s.Regions()) > 0 {
			g.guard.Deploy(s.Votes())
		}
	})
	store.SetFenced(g.guard.Fenced)
	return nil
}

// fenced tells the request path whether the region may use no more than its floor.
func (g *gateway) fenced() func() bool {
	if g.guard == nil {
		return nil
	}
	return g.guard.Fenced
}
