package rules

import (
	"context"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// Source is where rules come from. One goroutine calls it.
type Source interface {
	// Read is everything newer than since, or everything there is where since is zero or the source cannot tell the
	// difference. It returns within ctx's deadline.
	Read(ctx context.Context, since limit.Revision) (*Increment, error)
	// Name says in logs and status what the source is.
	Name() string
}

// Increment is what a source has to say, read as of one moment.
type Increment struct {
	// Whole means that this is everything: what is missing is gone.
	Whole bool
	// Behind means that the source knows less than the gateway, and that the increment says nothing.
	Behind bool
	// Reached is the revision up to which nothing is missing.
	Reached limit.Revision
	// Rules are words on rules: a nil Rule is a deletion.
	Rules   []snapshot.RuleEntry
	Plans   []snapshot.PlanEntry
	Keys    []Key
	Moved   []Moved
	Regions []snapshot.Region // nil: nothing new
	// RegionsAt is the newest revision of any region, also of one that was removed.
	RegionsAt limit.Revision
	// Default is the limit where no rule matches; nil leaves the configured one.
	Default *limit.Rule
	// Shadow is the kill switch as it stands now.
	Shadow bool
	// Control is the failure domain of the control plane as it stands now.
	Control string
	// Slow: the fast loop is switched off now.
	Slow bool
	// Faults are rows that were not understood. What they name keeps its last good state.
	Faults []Fault
}

// Key is a credential by its SHA-256. A deleted one is disabled.
type Key struct {
	Hash [32]byte
	snapshot.APIKey
}

// Moved is a key whose share has moved, and the base share this region had of it before.
type Moved struct {
	Key  limit.Key
	Base limit.Share
}

// Empty tells whether it holds no news, leaving out regions and the kill switch, which are read whole every time.
func (i *Increment) Empty() bool {
	return !i.Whole && len(i.Rules)+len(i.Plans)+len(i.Keys)+len(i.Moved) == 0 && i.Default == nil
}

// publish makes the increment the newest snapshot. Its error means that regions were refused; everything else is in force.
func (i *Increment) publish(holder *snapshot.Holder, fallbackDefault *limit.Rule, now time.Time) (refused error) {
	_ = holder.Replace(func(old *snapshot.Snapshot) (*snapshot.Snapshot, error) {
		from := old
		if i.Whole {
			from = snapshot.Empty(old.Region())
		}
		b := from.Edit()
		if i.Whole {
			b.SetDefault(fallbackDefault)
		}
		refused = i.apply(b, old, now)
		b.Expire(now)
		return b.Build(), nil
	})
	return refused
}

func (i *Increment) apply(b *snapshot.Builder, old *snapshot.Snapshot, now time.Time) error {
	for _, r := range i.Rules {
		if r.Rule == nil {
			b.DeleteRule(r.Tenant, r.Route, r.Revision)
		} else {
			b.SetRule(r.Tenant, r.Route, r.Rule)
		}
	}
	for _, p := range i.Plans {
		b.SetPlan(p.Tenant, p.Plan, p.Revision)
	}
	for _, k := range i.Keys {
		b.SetKey(k.Hash, k.APIKey)
	}
	for _, m := range i.Moved {
		b.MarkMoved(m.Key, m.Base)
	}
	if i.Default != nil {
		b.SetDefault(i.Default)
	}
	if i.Whole {
		i.keep(b, old)
	}
	b.SetShadow(i.Shadow)
	b.SetControl(i.Control)
	b.SetFastLoop(!i.Slow)
	b.SetStale(false)
	b.Reach(i.Reached)
	if i.Regions == nil {
		return nil
	}
	err := b.SetRegions(noteEarlier(i.Regions, old.Regions(), now), i.RegionsAt)
	if err != nil && i.Whole && len(old.Regions()) > 0 {
		_ = b.SetRegions(old.Regions(), old.RegionsRevision()) // the last good ones, accepted before
	}
	return err
}

// keep takes over from old what a whole increment cannot know or did not understand: moves that this region has seen
// itself, and the last good state of faulty rows.
func (i *Increment) keep(b *snapshot.Builder, old *snapshot.Snapshot) {
	for key, base := range old.Moved() {
		b.MarkMoved(key, base)
		if floor, known := old.MovedFloor(key); known {
			b.MarkFloor(key, floor)
		}
	}
	for _, f := range i.Faults {
		switch f.Table {
		case tableRule:
			if e, ok := old.Rule(f.Tenant, f.Route); ok && e.Rule != nil {
				b.SetRule(f.Tenant, f.Route, e.Rule)
			}
		case tableKey:
			if k, ok := old.APIKey(f.Hash); ok {
				b.SetKey(f.Hash, k)
			}
		case tableTenant:
			if p, ok := old.Plan(f.Tenant); ok {
				b.SetPlan(p.Tenant, p.Plan, p.Revision)
			}
		}
	}
}
