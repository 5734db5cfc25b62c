package exchange

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

// Every instance renews the region's lease for itself, and hears what all others renew. For the region it votes only where it
// leads; which process that is matters to nobody, because the region's record in Redis puts votes and agreements in order.

// fenced tells whether this instance may neither use more than the floor nor speak for the region.
func (x *Exchange) fenced() bool { return x.o.Guard != nil && x.o.Guard.Fenced() }

// renew says once in a while that this instance lives, and under which incarnation.
func (x *Exchange) renew(ctx context.Context, now time.Time) {
	g := x.o.Guard
	if g == nil {
		return
	}
	s := x.o.Rules.Load()
	if len(s.Regions()) < 2 {
		return
	}
	if f := g.Fenced(); f != x.wasFenced {
		x.wasFenced = f
		x.metrics.fence(ctx, f)
		if f {
			x.o.Logger.WarnContext(ctx, "no majority renews the region's lease: this instance keeps to the floor", "incarnation", x.record.Self)
		} else {
			x.o.Logger.InfoContext(ctx, "the region's lease is renewed: its share is in force", "incarnation", x.record.Self)
		}
	}
	if x.o.Leads() || now.Sub(x.watched) >= probeEvery || s.Votes().Run() {
		x.watch(ctx, now)
	}
	if now.Sub(x.renewed) < g.Terms().Renew {
		return
	}
	g.Deploy(s.Votes())
	c, ok := g.Call()
	if !ok {
		return
	}
	x.renewed = now
	r := wire.Renewal{Header: x.header(c.Incarnation), Stamp: int64(c.Stamp), LeaseMillis: c.Lease.Milliseconds(), Fences: c.Fences, Floor: s.Floor()}
	x.publish(ctx, wire.SubjectRenew(x.o.Region), "renewal", 1, &r)
}

// meet takes in what the region's record says.
func (x *Exchange) meet(record redisstore.Record) {
	if x.o.Guard != nil && record.Self > 0 && record.Self != x.record.Self {
		x.o.Guard.Incarnation(record.Self)
		x.renewed = time.Time{}
	}
	x.record = record
}

// hearRenewal notes what another region's instance calls, and answers it where this instance leads.
func (x *Exchange) hearRenewal(ctx context.Context, m *wire.Renewal) {
	if m.Region == x.o.Region {
		return
	}
	call := lease.Call{
		Renewal:     lease.Renewal{Region: m.Region, Stamp: time.Duration(m.Stamp)},
		Incarnation: m.Incarnation, Lease: time.Duration(m.LeaseMillis) * time.Millisecond, Fences: m.Fences,
	}
	who := lease.Life{Instance: m.Instance, Started: m.Started}
	x.ear.Hear(lease.Clock(), call, who)
	if call.Lease == 0 || !x.o.Leads() || x.voting[who] {
		return
	}
	x.voting[who] = true
	fences, _ := x.ear.Fences(m.Region)
	blank := x.movedKeys() == 0
	x.job(ctx, func(ctx context.Context) event {
		record, err := x.o.Store.Vote(ctx, m.Region, m.Incarnation, fences)
		return func(ctx context.Context, _ time.Time) {
			delete(x.voting, who)
			// A region that re-learns what it knew may have forgotten that it agreed to a minting.
			if err != nil || record.Self == 0 || record.Phase != rights.Active && !blank {
				return
			}
			g := wire.Grant{
				Header: x.header(record.Self), To: m.Region, ToInstance: m.Instance, ToStarted: m.Started,
				ReceiverIncarnation: m.Incarnation, Stamp: m.Stamp,
			}
			if record.Peer > m.Incarnation {
				g.Known = record.Peer
			}
			x.publish(ctx, wire.SubjectGrant(m.Region, x.o.Region), "grant", 1, &g)
		}
	})
}

// hearGrant takes in a voter's answer to this instance.
func (x *Exchange) hearGrant(ctx context.Context, now time.Time, m *wire.Grant) {
	if x.o.Guard == nil || m.To != x.o.Region || m.ToInstance != x.o.Instance || m.ToStarted != x.started.UnixMilli() {
		return
	}
	if m.Known > m.ReceiverIncarnation {
		x.superseded(ctx, now, m.ReceiverIncarnation, m.Known)
		return
	}
	x.o.Guard.Hear(lease.Answer{
		Renewal: lease.Renewal{Region: x.o.Region, Life: x.o.Guard.Life(), Stamp: time.Duration(m.Stamp)}, Voter: m.Region,
	}, m.ReceiverIncarnation)
}

// silent tells whether the region in whose name a leader speaks has surely stopped using more than its floor, as far as was
// heard here.
func (x *Exchange) silent(region string) bool {
	fences, known := x.ear.Fences(region)
	return (fences || !known) && x.ear.Silent(lease.Clock(), region)
}

// agree voids the region in whose name a leader speaks, unless anybody of this region has answered it of late.
func (x *Exchange) agree(ctx context.Context, m *wire.Void, silence time.Duration) (bool, error) {
	record, err := x.o.Store.Agree(ctx, m.Region, m.Incarnation, silence)
	return record.Agreed, err
}
