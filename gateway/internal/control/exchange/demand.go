package exchange

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/wire"
)

// silentAfter: an instance that has not spoken of a key for so long counts as offering none of it.
const silentAfter = 20 * time.Second

// demand turns the cumulative counters of the region's instances into what the region is offered of each key.
type demand struct {
	keys map[limit.Key]*keyDemand
}

type keyDemand struct {
	instances map[string]*instanceDemand
	refused   float64 // since the agent was told
	fresh     bool
}

type instanceDemand struct {
	started           int64
	elapsed           int64 // the instance's own age, ms
	admitted, refused uint64
	rate              float64
	heard             time.Time
}

func newDemand() *demand { return &demand{keys: map[limit.Key]*keyDemand{}} }

// hear takes in one report of one instance of the region. Reports that are older than the last one are ignored.
func (d *demand) hear(now time.Time, u *wire.Usage) {
	for i := range u.Keys {
		k := &u.Keys[i]
		id := limit.Key{Tenant: k.Tenant, Route: k.Route}
		kd := d.keys[id]
		if kd == nil {
			kd = &keyDemand{instances: map[string]*instanceDemand{}}
			d.keys[id] = kd
		}
		in := kd.instances[u.Instance]
		if in == nil || in.started < u.Started {
			kd.instances[u.Instance] = &instanceDemand{
				started: u.Started, elapsed: u.ElapsedMillis, admitted: k.Admitted, refused: k.Refused, heard: now,
			}
			continue
		}
		elapsed := u.ElapsedMillis - in.elapsed
		if u.Started != in.started || elapsed <= 0 || k.Admitted < in.admitted || k.Refused < in.refused {
			continue
		}
		admitted, refused := float64(k.Admitted-in.admitted), float64(k.Refused-in.refused)
		in.rate = (admitted + refused) / float64(elapsed) * 1000
		in.elapsed, in.admitted, in.refused, in.heard = u.ElapsedMillis, k.Admitted, k.Refused, now
		kd.refused += refused
		kd.fresh = true
	}
}

// observe tells the agent what has been heard since the last time, and forgets who has fallen silent.
func (d *demand) observe(now time.Time, a *agent.Agent) {
	for id, k := range d.keys {
		rate := 0.0
		for name, in := range k.instances {
			if now.Sub(in.heard) > silentAfter {
				delete(k.instances, name)
				k.fresh = true
				continue
			}
			rate += in.rate
		}
		if k.fresh {
			a.Observe(now, id, rate, k.refused)
			k.fresh, k.refused = false, 0
		}
		if len(k.instances) == 0 {
			delete(d.keys, id)
		}
	}
}
